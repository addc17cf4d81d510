// Command lakeweir is the whole product in one program: it replicates the tables
// of a database into Apache Iceberg tables and proves them equal.
//
// The package turns flags, arguments and environment variables into calls of the
// packages below it and their results into text or JSON. One command is one file,
// cmd_<name>.go, with a constructor (listed in root.go), an options struct and a
// run function; errors become exit codes in exit.go and text in print.go, and
// nowhere else. It holds no rule of replication and no SQL.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}
