// Package tableconfigs holds the example sources that come with Lakeweir. The
// folder is an example of what users keep in their own repository; this file only
// puts it into the binary, so that "lakeweir demo" needs nothing else.
package tableconfigs

import "embed"

// Files holds the example sources, one folder each.
//
//go:embed */*.yaml
var Files embed.FS
