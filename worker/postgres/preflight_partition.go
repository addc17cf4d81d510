package postgres

import (
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// judgeFamily refuses a table whose rows are another table's as well.
func judgeFamily(out *findings, name string, have tableFacts) {
	switch {
	case have.root != "":
		out.add(catalog.Blocks, catalog.CodeSourcePartition, name, "configure "+have.root+", and take this table's file away",
			"%s is a partition of %s: its changes are sent under that name", name, have.root)
	case have.parents != "":
		out.add(catalog.Blocks, catalog.CodeSourceInherited, name, "use declarative partitioning, or a table of its own",
			"%s inherits from %s: its rows show under both, its changes under its own name only", name, have.parents)
	case have.children != "":
		out.add(catalog.Blocks, catalog.CodeSourceInherited, name, "use declarative partitioning, or replicate tables that nothing inherits from",
			"%s has tables that inherit from it (%s): their rows show under its name, and their changes do not", name, have.children)
	}
}

// judgeLeaves refuses leaves whose changes are not in the log, or do not say of which
// row they are: the identity that counts is that of the leaf.
func judgeLeaves(out *findings, t *catalog.Table, have tableFacts) {
	name := t.Name.String()
	for _, l := range have.leaves {
		schema, table, _ := strings.Cut(l.Name, ".")
		alter := "ALTER TABLE " + quoteName(catalog.TableName{Schema: schema, Name: table})
		switch {
		case l.foreign:
			out.add(catalog.Blocks, catalog.CodeSourcePartition, name, "detach it, or replicate the partitions that are tables",
				"partition %s of %s is a foreign table, whose changes are not in the log", l.Name, name)
		case !l.permanent:
			out.add(catalog.Blocks, catalog.CodeSourcePartition, name, alter+" SET LOGGED",
				"partition %s of %s is unlogged: its changes are not in the log", l.Name, name)
		case l.identity == "f" || !t.HasKey() && (l.identity != "n" && len(l.carries) > 0):
		case l.identity == "n" || len(l.carries) == 0 || !containsAll(l.carries, t.PrimaryKey):
			out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, alter+" REPLICA IDENTITY FULL",
				"updates and deletes in partition %s of %s do not carry its key: the replica identity of the partition counts, not that of the table", l.Name, name)
		}
	}
}
