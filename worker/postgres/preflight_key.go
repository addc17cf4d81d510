package postgres

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// judgeKey asks whether the configured key tells rows apart, in the lake as at the
// source, and whether every change will carry it.
func judgeKey(out *findings, t *catalog.Table, f facts, have tableFacts) {
	name := t.Name.String()
	if !t.HasKey() {
		judgeKeyless(out, t, have)
		return
	}
	columns, _, _ := have.replicated(f.version)
	var nullable []string
	for _, k := range t.PrimaryKey {
		i := slices.IndexFunc(columns, func(a attribute) bool { return a.name == k })
		if i < 0 {
			return // said already
		}
		if !columns[i].notNull {
			nullable = append(nullable, k)
		}
		judgeKeyColumn(out, t, columns[i], have.typeOf(k))
	}
	judgeUnique(out, t, have)
	if len(nullable) > 0 {
		fix := make([]string, len(nullable))
		for i, c := range nullable {
			fix[i] = "ALTER COLUMN " + quoteIdent(c) + " SET NOT NULL"
		}
		out.add(catalog.Blocks, catalog.CodeSourceKey, name, "ALTER TABLE "+quoteName(t.Name)+" "+strings.Join(fix, ", "), "key column %s of %s may be NULL", strings.Join(nullable, ", "), name)
	}
	judgeIdentity(out, t, have)
}

// judgeKeyColumn asks whether values that the server holds equal are one key in the
// lake.
func judgeKeyColumn(out *findings, t *catalog.Table, a attribute, typ catalog.SourceType) {
	name := t.Name.String()
	form := typemap.KeyFormOf(typ)
	if a.spelled && form != typemap.KeyUnknown {
		form = typemap.KeySpelled
	}
	switch form {
	case typemap.KeyUnknown:
		out.add(catalog.Blocks, catalog.CodeSourceKey, name, "name other columns under primary_key, or scd: [] to keep bronze only",
			"key column %s of %s is of type %s: values that the server holds equal may print differently there, so one row could become two in the lake", a.name, name, typ.Name)
	case typemap.KeySpelled:
		out.add(catalog.Limits, catalog.CodeSourceKey, name, "count on it that a row which is spelled anew is deleted under its old spelling and made under the new one, or key the table by another column",
			"the server holds different spellings of key column %s of %s equal; the lake tells them apart", a.name, name)
	case typemap.KeyFloat, typemap.KeyNumeric, typemap.KeyInterval, typemap.KeyBlanks:
		padded := form == typemap.KeyBlanks && typ.Modifier >= 0 // char(n) has its blanks always
		if t.PII[a.name] == catalog.Tokenize && !padded {
			out.add(catalog.Blocks, catalog.CodeSourceKey, name, "key the table by another column, or do not tokenize this one",
				"key column %s of %s is tokenized, and values of type %s that are equal may print differently: they would get different tokens", a.name, name, typ.Name)
		}
	case typemap.KeyExact:
		if typ.Base == "enum" {
			out.add(catalog.Notes, catalog.CodeSourceKey, name, "", "key column %s of %s is an enum: do not rename its labels, which the log does not tell", a.name, name)
		}
	}
}

func judgeUnique(out *findings, t *catalog.Table, have tableFacts) {
	name := t.Name.String()
	key := slices.Sorted(slices.Values(t.PrimaryKey))
	list := strings.Join(t.PrimaryKey, ", ")
	on := func(i indexFacts) bool { return slices.Equal(slices.Sorted(slices.Values(i.columns)), key) }
	if slices.ContainsFunc(have.indexes, func(i indexFacts) bool { return on(i) && i.plain }) {
		return
	}
	fix := "CREATE UNIQUE INDEX CONCURRENTLY ON " + quoteName(t.Name) + " (" + quoteIdents(t.PrimaryKey) + ")"
	if slices.ContainsFunc(have.indexes, on) {
		out.add(catalog.Blocks, catalog.CodeSourceKey, name, fix,
			"the unique index of %s on (%s) has a collation or an operator class of its own: it may hold rows that the columns' type takes for one", name, list)
		return
	}
	if primary := have.primaryKey(); primary != nil {
		fix += "; -- or set primary_key: [" + strings.Join(primary, ", ") + "], the table's own, in its file"
	}
	out.add(catalog.Blocks, catalog.CodeSourceKey, name, fix, "no unique index of %s is on exactly (%s): two rows could share the key", name, list)
}

// deferred reports whether nothing keeps two rows from sharing the key until their
// transaction ends: then only a whole old image tells which of them a change is of.
func (t tableFacts) deferred(key []string) bool {
	on := func(i indexFacts) bool { return len(i.columns) == len(key) && containsAll(key, i.columns) }
	return slices.ContainsFunc(t.indexes, on) && !slices.ContainsFunc(t.indexes, func(i indexFacts) bool { return on(i) && i.immediate })
}

func judgeIdentity(out *findings, t *catalog.Table, have tableFacts) {
	name := t.Name.String()
	fix := "ALTER TABLE " + quoteName(t.Name) + " REPLICA IDENTITY FULL"
	var carries []string
	switch have.identity {
	case "f":
		return
	case "n":
		if primary := have.primaryKey(); primary != nil && containsAll(primary, t.PrimaryKey) {
			fix = "ALTER TABLE " + quoteName(t.Name) + " REPLICA IDENTITY DEFAULT"
		}
		out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, fix, "the replica identity of %s is NOTHING: updates and deletes do not say of which row", name)
		return
	case "d":
		if i := slices.IndexFunc(have.indexes, func(i indexFacts) bool { return i.primary && !i.immediate }); i >= 0 {
			out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, fix, "the primary key of %s is deferrable, so it is no replica identity: once published, the server refuses to update and delete its rows", name)
			return
		}
		carries = have.primaryKey()
	case "i":
		if i := slices.IndexFunc(have.indexes, func(i indexFacts) bool { return i.identity }); i >= 0 {
			carries = have.indexes[i].columns
		}
		if have.deferred(t.PrimaryKey) {
			out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, fix, "the key of %s is deferrable: while two rows share a key inside a transaction, only whole old rows tell them apart", name)
			return
		}
	}
	if len(carries) == 0 {
		out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, fix, "%s has no primary key, so its replica identity (%s) carries no column: updates and deletes do not say of which row", name, identityWord(have.identity[0]))
		return
	}
	if !containsAll(carries, t.PrimaryKey) {
		out.add(catalog.Blocks, catalog.CodeSourceIdentity, name, fix+"; -- or set primary_key: ["+strings.Join(carries, ", ")+"] in the table's file",
			"deletes of %s carry (%s) only, which does not hold the configured key (%s)", name, strings.Join(carries, ", "), strings.Join(t.PrimaryKey, ", "))
	}
}

// typeOf returns the type of a column, with domains looked through.
func (t tableFacts) typeOf(column string) catalog.SourceType {
	if i := slices.IndexFunc(t.attributes, func(a attribute) bool { return a.name == column }); i >= 0 && i < len(t.types) {
		return t.types[i]
	}
	return catalog.SourceType{}
}

func (t tableFacts) primaryKey() []string {
	if i := slices.IndexFunc(t.indexes, func(i indexFacts) bool { return i.primary }); i >= 0 {
		return t.indexes[i].columns
	}
	return nil
}
