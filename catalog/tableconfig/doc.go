// Package tableconfig reads tableconfigs/: one folder per source, in it
// source.yaml and one <schema>.<table>.yaml per table, into catalog values.
//
// It promises that every problem of every file is reported at once, in file
// order, with file, line, column, an excerpt, a stable code and what to do; that
// no key is ever ignored (one whose feature is not built yet is refused by name);
// that defaults are filled in; and that no secret appears in a problem or its
// excerpt. It looks at files alone: whether the tables and columns exist is the
// source's preflight (worker/postgres).
//
// The structs SourceFile and TableFile are the one description of the format. The
// parser reads their fields and tags, schema/*.json and docs/reference/tableconfig.md
// are generated from them and their comments (go test ./catalog/tableconfig -update),
// and Explain reads the schema.
package tableconfig
