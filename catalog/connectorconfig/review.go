package connectorconfig

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// Review judges a configuration that is deployed, whoever wrote it: what in it loses or
// changes data, and what in it is not of this source. Its findings show no value that
// could be a secret.
func Review(source *catalog.Source, tables []*catalog.Table, deployed map[string]string) []catalog.Finding {
	r := &review{source: source, deployed: deployed}
	r.identity()
	for _, name := range slices.Sorted(maps.Keys(deployed)) {
		if slices.ContainsFunc(lists, func(l string) bool { return l == name }) {
			continue // they are looked at table by table
		}
		if o := judge(name, deployed[name]); o != nil {
			r.add(o.Severity, "", o.Instead+" in connector "+source.Connector.Name, "connector %s: %s", source.Connector.Name, o.Message)
		}
	}
	for _, rule := range rules {
		if _, set := deployed[rule.name]; set || rule.absent == "" || r.foreignConverter(rule.name) {
			continue
		}
		if o := judge(rule.name, rule.absent); o != nil {
			r.add(o.Severity, "", "set "+rule.name+" to "+rule.fine[0]+" in connector "+source.Connector.Name,
				"connector %s does not set %s, and Debezium's default counts: %s", source.Connector.Name, rule.name, strings.TrimPrefix(o.Message, rule.name+" "))
		}
	}
	r.tables(tables)
	return r.list
}

type review struct {
	source   *catalog.Source
	deployed map[string]string
	list     []catalog.Finding
}

// lists say which tables a connector captures.
var lists = []string{"table.exclude.list", "schema.include.list", "schema.exclude.list"}

func (r *review) add(severity catalog.Severity, table, fix, format string, args ...any) {
	r.list = append(r.list, catalog.Finding{
		Severity: severity, Code: catalog.CodeConnectorSetting, Source: r.source.Name, Table: table, Message: fmt.Sprintf(format, args...), Fix: fix,
	})
}

// foreignConverter reports whether a property of the JSON converter is left out since
// another one is at work.
func (r *review) foreignConverter(name string) bool {
	for _, side := range []string{"key.converter", "value.converter"} {
		if strings.HasPrefix(name, side+".") {
			return r.deployed[side] != "" && r.deployed[side] != jsonConverter
		}
	}
	return false
}

// identity compares what a connector must have in common with its source.yaml.
func (r *review) identity() {
	c := r.source.Connector
	for _, p := range []struct{ name, want, absent, harm string }{
		{"topic.prefix", c.TopicPrefix, "", "the worker reads topics that this connector does not write"},
		{"slot.name", r.source.Slot, "debezium", "Lakeweir watches a slot that this connector does not hold"},
		{"publication.name", r.source.Publication, "dbz_publication", "Lakeweir compares the tables with a publication that this connector does not read"},
		{"signal.data.collection", signalTable(&subject{source: r.source}), "", "signals would stand in a table that this connector does not read"},
	} {
		got, set := r.deployed[p.name]
		if !set {
			got = p.absent
		}
		if got == p.want || p.name == "signal.data.collection" && p.want == "" {
			continue
		}
		shown := got
		if shown == "" {
			shown = "not set"
		}
		r.add(catalog.Blocks, "", "correct source.yaml or the connector, so that both say the same", "connector %s: %s is %s, not %s: %s", c.Name, p.name, shown, p.want, p.harm)
	}
	r.format()
}

func (r *review) format() {
	class, schemas := r.deployed["value.converter"], r.deployed["value.converter.schemas.enable"]
	if class == "" {
		return // Connect's own default, which is not told
	}
	got := catalog.FormatAvro
	if class == jsonConverter {
		got = catalog.FormatJSONSchema // the converter's default
		if strings.EqualFold(schemas, "false") {
			got = catalog.FormatJSON
		}
	}
	if got != r.source.Connector.Format {
		r.add(catalog.Notes, "", "set connector.format to "+string(got), "connector %s writes %s, source.yaml says %s; the worker reads both", r.source.Connector.Name, got, r.source.Connector.Format)
	}
}

// tables looks whether each table is captured.
func (r *review) tables(tables []*catalog.Table) {
	const fix = "lakeweir connector apply, or correct the list in the connector: until then nothing of the table is captured, and no error says so"
	for _, t := range tables {
		name := t.Name.String()
		switch {
		case r.deployed["table.include.list"] != "" && !matches(r.deployed["table.include.list"], name):
			r.add(catalog.Blocks, name, fix, "%s is not on table.include.list of connector %s", name, r.source.Connector.Name)
		case matches(r.deployed["table.exclude.list"], name):
			r.add(catalog.Blocks, name, fix, "%s is on table.exclude.list of connector %s", name, r.source.Connector.Name)
		case r.deployed["schema.include.list"] != "" && !matches(r.deployed["schema.include.list"], t.Name.Schema):
			r.add(catalog.Blocks, name, fix, "schema %s is not on schema.include.list of connector %s", t.Name.Schema, r.source.Connector.Name)
		case matches(r.deployed["schema.exclude.list"], t.Name.Schema):
			r.add(catalog.Blocks, name, fix, "schema %s is on schema.exclude.list of connector %s", t.Name.Schema, r.source.Connector.Name)
		}
	}
}

// matches reports whether a list of Debezium names the text: regular expressions between
// commas, each for the whole, in any case. One that cannot be read matches nothing.
func matches(list, text string) bool {
	for _, p := range split(list) {
		if re, err := regexp.Compile(`(?i)^(?:` + strings.TrimSpace(p) + `)$`); err == nil && re.MatchString(text) {
			return true
		}
	}
	return false
}

// split cuts a list at commas that no backslash stands before.
func split(list string) []string {
	var out []string
	var b strings.Builder
	escaped := false
	for _, r := range list {
		if r == ',' && !escaped {
			out = append(out, b.String())
			b.Reset()
			continue
		}
		escaped = r == '\\' && !escaped
		b.WriteRune(r)
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}
