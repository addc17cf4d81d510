package postgres

import (
	"context"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// What Debezium 3.6 cannot capture of a Postgres database; docs/debezium-values.md has it
// in words, and e2e tries it.

// unregistrableSQL lists types that Debezium does not survive when it starts: it reads
// every type of the database, in use or not.
const unregistrableSQL = `SELECT coalesce(array_agg(format_type(t.oid, NULL) ORDER BY t.oid), '{}') FROM pg_type t
WHERE t.typtype = 'e' AND NOT EXISTS (SELECT FROM pg_enum WHERE enumtypid = t.oid)
 OR t.typtype = 'd' AND (SELECT b.typtype FROM pg_type b WHERE b.oid = t.typbasetype) = 'e'`

func gatherUnregistrable(ctx context.Context, q querier, source *catalog.Source) (types []string, err error) {
	if source.Capture != catalog.Debezium {
		return nil, nil
	}
	return types, q.QueryRow(ctx, unregistrableSQL).Scan(&types)
}

func judgeUnregistrable(out *findings, f facts) {
	for _, name := range f.unregistrable {
		out.add(catalog.Blocks, catalog.CodeSourceType, "", "drop type "+name+", or capture the source directly",
			"type %s of database %s keeps Debezium's connector from starting, whether a table uses it or not: it is an enum without labels, or a domain over an enum", name, f.database)
	}
}

// arraysLeftOut are the elements, by their base type, of arrays that Debezium leaves out
// of its events. An array of a domain over one of them comes.
var arraysLeftOut = []string{"interval", "name", "money", "xml", "point", "refcursor", "varbit"}

// judgeTypes looks at the columns' types.
func judgeTypes(out *findings, name string, columns []attribute, have tableFacts) {
	const fix = "leave the column out by a column list of the publication, or capture the table directly"
	for _, a := range columns {
		typ := have.typeOf(a.name)
		switch {
		case typ.Base == "array" && typ.Elem != nil && !strings.Contains(typ.Elem.Name, ".") && slices.Contains(arraysLeftOut, typ.Elem.Base):
			out.add(catalog.Blocks, catalog.CodeSourceType, name, fix, "Debezium leaves column %s (%s) of %s out of its events, and the table would stop", a.name, typ.Name, name)
		case typ.Base == "refcursor":
			out.add(catalog.Blocks, catalog.CodeSourceType, name, fix, "a value in column %s (%s) of %s keeps Debezium's snapshot from ending, that of every table, while the connector is RUNNING: its driver asks for the rows of the cursor", a.name, typ.Name, name)
		case typ.Base == "int2vector", typ.Base == "oidvector":
			out.add(catalog.Blocks, catalog.CodeSourceType, name, fix, "Debezium loses the values of column %s (%s) of %s, and an empty one stops the connector", a.name, typ.Name, name)
		}
	}
}
