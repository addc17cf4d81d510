package tableconfig

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// readTable reads one table's file. src is nil when the source's own file could
// not be read; what depends on it is then not judged.
func (l *loader) readTable(file, source string, src *sourceReading) {
	d := l.read(file)
	if d == nil {
		return
	}
	var f TableFile
	d.decode(&f, sourceSpec, sourceFileName)
	t := buildTable(&f, d, src)
	t.Source, t.File = source, d.file
	if t.Name.Name != "" {
		checkFileName(f.Table, t.Name, path.Base(file), d)
	}
	l.docs[d.file] = d
	if t.Name.Name != "" {
		l.tables = append(l.tables, t)
	}
	if len(d.problems) == 0 && src != nil {
		l.config.Tables = append(l.config.Tables, t)
	}
	l.problems = append(l.problems, d.problems...)
}

// buildTable fills in defaults and checks what the form cannot say.
func buildTable(f *TableFile, d *document, src *sourceReading) *catalog.Table {
	var defaults DefaultsFile
	has := func(string) bool { return false }
	if src != nil {
		defaults, has = src.file.Defaults, func(key string) bool { return src.doc.has("defaults." + key) }
	}
	t := &catalog.Table{
		Owner:          orDefault(f.Owner, defaults.Owner),
		PrimaryKey:     nilIfEmpty(f.PrimaryKey),
		Tier:           catalog.Tier(orDefault(f.FreshnessTier, orDefault(defaults.FreshnessTier, string(catalog.Tier1m)))),
		TrackColumns:   nilIfEmpty(f.TrackHistoryColumns),
		TrackExcept:    nilIfEmpty(f.TrackHistoryExceptColumns),
		SoftDelete:     f.SoftDelete,
		ApplyTruncates: f.ApplyTruncates,
	}
	if f.Table != "" {
		name, err := parseTable(f.Table)
		if err != nil {
			d.report(catalog.CodeConfigValue, d.value("table"), fmt.Sprintf("\"table\": %s", err), forms["table"].hint)
		}
		t.Name = name
	}
	if t.Owner == "" && src != nil && !d.has("owner") {
		d.report(catalog.CodeConfigMissing, place{1, 1, 0}, `"owner" is missing`, `add it, such as "owner: team-checkout", or set defaults.owner in source.yaml`)
	}
	if d.refused[""] {
		return t
	}
	layers(t, f, d, defaults, has("scd"))
	if !d.has("soft_delete") {
		t.SoftDelete = defaults.SoftDelete
	}
	if !d.has("apply_truncates") {
		t.ApplyTruncates = defaults.ApplyTruncates || !has("apply_truncates")
	}
	if len(f.PII) > 0 {
		t.PII = map[string]catalog.Protection{}
		for column, how := range f.PII {
			t.PII[column] = catalog.Protection(how)
		}
	}
	checkColumns(f, d)
	checkHistory(f, d)
	checkPII(t, f, d, src)
	return t
}

// nilIfEmpty makes an empty list and an absent one the same value.
func nilIfEmpty(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

// layers decides which layers are kept, and refuses those that need a key.
func layers(t *catalog.Table, f *TableFile, d *document, defaults DefaultsFile, hasDefault bool) {
	if d.refused["primary_key"] || d.refused["scd"] {
		return // without them nothing follows
	}
	scd := []int{1, 2}
	switch {
	case d.has("scd"):
		scd = f.SCD
	case len(f.PrimaryKey) == 0:
		scd = nil
	case hasDefault:
		scd = defaults.SCD
	}
	switch {
	case len(f.PrimaryKey) > 0:
	case len(scd) > 0:
		d.report(catalog.CodeConfigConflict, d.value("scd"), `"scd" asks for silver layers, and the table has no primary_key`,
			"name the key's columns in primary_key, or write scd: [] to keep bronze alone")
		return
	case !d.has("scd") && !d.has("primary_key"):
		d.report(catalog.CodeConfigMissing, place{1, 1, 0}, `"primary_key" is missing`,
			"name the key's columns; for a table without a key write scd: [], which keeps bronze alone")
		return
	}
	t.Current, t.History = slices.Contains(scd, 1), slices.Contains(scd, 2)
}

// checkColumns refuses names that no column has.
func checkColumns(f *TableFile, d *document) {
	check := func(path, column string) {
		if len(column) > maxIdentifier {
			d.report(catalog.CodeConfigValue, d.value(path), fmt.Sprintf("%q has %d bytes, and a name of Postgres has %d at most", column, len(column), maxIdentifier), "write the name as the database has it")
		}
	}
	for key, columns := range map[string][]string{"primary_key": f.PrimaryKey, "track_history_columns": f.TrackHistoryColumns, "track_history_except_columns": f.TrackHistoryExceptColumns} {
		for i, c := range columns {
			check(fmt.Sprintf("%s[%d]", key, i), c)
		}
	}
	for c := range f.PII {
		check("pii."+c, c)
	}
}

// checkHistory refuses settings of layers that are not kept.
func checkHistory(f *TableFile, d *document) {
	tracked, except := len(f.TrackHistoryColumns) > 0, len(f.TrackHistoryExceptColumns) > 0
	if tracked && except {
		first, second := "track_history_columns", "track_history_except_columns"
		if d.key(second).line < d.key(first).line {
			first, second = second, first
		}
		d.report(catalog.CodeConfigConflict, d.key(second), fmt.Sprintf("%q and %q exclude each other", first, second), "keep the shorter of the two lists")
	}
	stated := d.has("scd") && !d.refused["scd"]
	if stated && !slices.Contains(f.SCD, 2) && (tracked || except) {
		key := "track_history_columns"
		if !tracked {
			key = "track_history_except_columns"
		}
		d.report(catalog.CodeConfigConflict, d.key(key), fmt.Sprintf("%q is set, and no history is kept", key), "add 2 to scd, or remove it")
	}
	if stated && !slices.Contains(f.SCD, 1) && d.has("soft_delete") && f.SoftDelete {
		d.report(catalog.CodeConfigConflict, d.key("soft_delete"), `"soft_delete" is true, and no current state is kept`, "add 1 to scd, or remove it")
	}
}

// checkPII keeps what PRODUCT promises of masked columns: redacted ones identify
// nothing and make no version, tokens need a key.
func checkPII(t *catalog.Table, f *TableFile, d *document, src *sourceReading) {
	needsKey := ""
	for _, column := range slices.SortedFunc(maps.Keys(t.PII), func(a, b string) int {
		return d.key("pii." + a).compare(d.key("pii." + b))
	}) {
		at := d.value("pii." + column)
		switch t.PII[column] {
		case catalog.Redact:
			if slices.Contains(t.PrimaryKey, column) {
				d.report(catalog.CodeConfigConflict, at, fmt.Sprintf("%q is part of primary_key and cannot be redacted", column), "write tokenize: the same value gives the same token, so rows stay apart")
			} else if slices.Contains(f.TrackHistoryColumns, column) {
				d.report(catalog.CodeConfigConflict, at, fmt.Sprintf("%q is in track_history_columns and cannot be redacted: every value would look the same", column), "write tokenize, or remove it from track_history_columns")
			}
		case catalog.Tokenize:
			if needsKey == "" {
				needsKey = column
			}
		}
	}
	if needsKey != "" && src != nil && !src.doc.has("token_key") {
		d.report(catalog.CodeConfigMissing, d.value("pii."+needsKey), fmt.Sprintf("%q is tokenized, and %s has no token_key", needsKey, src.display), "add token_key: ${env:NAME} or ${file:PATH} to source.yaml; the key has 32 bytes at least")
	}
}

func (p place) compare(q place) int {
	if p.line != q.line {
		return p.line - q.line
	}
	return p.column - q.column
}

// checkFileName keeps file and table together, so that one is found by the other.
func checkFileName(written string, name catalog.TableName, file string, d *document) {
	stem := strings.TrimSuffix(file, ".yaml")
	if got, err := parseTable(stem); err == nil && got == name {
		return
	}
	if plain, err := url.PathUnescape(stem); err == nil {
		if got, err := parseTable(plain); err == nil && got == name {
			return
		}
	}
	d.report(catalog.CodeConfigFile, d.value("table"), fmt.Sprintf("the file is called %s, and its table is %s", file, written), "rename the file to "+fileNameFor(written)+", or correct the table")
}
