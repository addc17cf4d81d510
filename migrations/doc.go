// Package migrations owns the registry's tables: numbered SQL files and the one
// function that applies them.
//
// Everything lives in the schema lakeweir, named in full, so neither search_path
// nor what else is in the database matters. Migrations only add; one that an older
// binary could not read raises lakeweir.compatibility.min_reader, and such a binary
// then gets an IncompatibleError. Any Postgres from 14 on will do. What the tables
// mean is catalog/registry's.
package migrations
