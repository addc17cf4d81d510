package dashboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/orchestrator/monitor"
	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

// tablePage is the page of one table, in words.
type tablePage struct {
	Row      tableRow
	Fragment string
	Clock    string
	Reason   *reason
	Facts    []figure
	Layers   []layerRow
	ChartSVG string
	Batches  []batchRow
	Columns  []columnRow
	Versions []eventRow
	Events   []eventRow
}

// reason is why a table is stopped.
type reason struct{ Code, Message, Hint, Since string }

type layerRow struct{ Layer, Table, Rows, Through, Command string }

type batchRow struct {
	Key, At, Ops, Size, Took, Cursor, Unfit string
}

type columnRow struct{ Name, Source, Lake, Notes string }

type eventRow struct{ Key, At, Kind, Text string }

func tablePageOf(d *monitor.Detail) tablePage {
	t := &d.Table
	p := tablePage{
		Row: rowOf(t, d.Now), Fragment: "/fragments" + tableHref(t.Source, t.Name), Clock: d.Now.UTC().Format("15:04:05") + " UTC",
		ChartSVG: sparkline(d.Samples, t.Freshness.Bound, d.Now, time.Hour, 10*registry.SampleEvery/2, 720, 90),
	}
	if t.Fault != nil {
		p.Reason = &reason{string(t.Fault.Code), t.Fault.Message, t.Fault.Hint, human.Ago(t.Since, d.Now)}
	}
	p.Facts = factsOf(d)
	for _, l := range t.LayerList() {
		row := layerRow{Layer: string(l.Layer), Table: l.Table, Rows: human.Exact(l.Rows), Through: "–", Command: "lakeweir scan " + l.Table + " --limit 10"}
		if l.Through != 0 {
			row.Through = l.Through.String()
		}
		p.Layers = append(p.Layers, row)
	}
	for i := range d.Batches {
		p.Batches = append(p.Batches, batchRowOf(&d.Batches[i], d.Now))
	}
	if len(d.Schemas) > 0 {
		p.Columns = columnsOf(t, d.Schemas[0].Schema)
	}
	for _, v := range d.Schemas {
		p.Versions = append(p.Versions, eventRow{Key: fmt.Sprint("v", v.Schema.Version), At: human.Clock(v.SeenAt, d.Now), Kind: fmt.Sprint("v", v.Schema.Version), Text: plural(len(v.Schema.Columns), "column")})
	}
	for i, e := range d.Events {
		p.Events = append(p.Events, eventRow{Key: fmt.Sprint(e.At.UnixNano(), len(d.Events)-i), At: human.Clock(e.At, d.Now), Kind: strings.ReplaceAll(string(e.Kind), "_", " "), Text: eventText(e)})
	}
	return p
}

func factsOf(d *monitor.Detail) []figure {
	t := &d.Table
	facts := []figure{
		{Value: age(t.Freshness), Label: "old at most, of " + string(t.Config.Tier)},
		{Value: human.Rate(t.Rate), Label: "changes, last minute"},
		{Value: human.Exact(t.Totals.Changes), Label: "changes recorded"},
		{Value: human.Ago(t.Totals.LastBatchAt, d.Now), Label: "last commit"},
		{Value: human.Clock(t.VerifiedThrough, d.Now), Label: "verified through"},
	}
	if t.Freshness.Known && !t.Freshness.Within() {
		facts[0].Class = "warn"
	}
	if v := t.Verified; v != nil && v.Differing > 0 {
		facts[4] = figure{Value: human.Exact(v.Differing), Label: "rows differed " + human.Ago(v.At, d.Now), Class: "bad"}
	}
	return facts
}

func batchRowOf(b *registry.BatchRecord, now time.Time) batchRow {
	r := batchRow{Key: b.ID, At: human.Clock(b.At, now), Size: human.Bytes(b.Bytes), Cursor: b.To.Position.String()}
	var ops []string
	for _, o := range []struct {
		n    int
		word string
	}{{b.Creates, "created"}, {b.Updates, "updated"}, {b.Deletes, "deleted"}, {b.Reads, "read"}, {b.Truncates, "truncated"}} {
		if o.n > 0 {
			ops = append(ops, human.Exact(int64(o.n))+" "+o.word)
		}
	}
	r.Ops = strings.Join(ops, ", ")
	if r.Ops == "" {
		r.Ops = "no changes"
	}
	var took []string
	for _, l := range []registry.Commit{b.Bronze, b.Current, b.History} {
		ms := "–"
		if l != (registry.Commit{}) {
			ms = human.Exact(l.Took.Milliseconds())
		}
		took = append(took, ms)
	}
	r.Took = strings.Join(took, " / ")
	if b.Unfit > 0 {
		var names []string
		for name, n := range b.Unfits {
			names = append(names, fmt.Sprintf("%s: %d", name, n))
		}
		slices.Sort(names)
		r.Unfit = plural(b.Unfit, "value") + " did not fit and became NULL (" + strings.Join(names, ", ") + ")"
	}
	return r
}

func columnsOf(t *monitor.Table, s *catalog.Schema) []columnRow {
	var out []columnRow
	for i, c := range s.Columns {
		var notes []string
		if s.IsKey(i) {
			notes = append(notes, "key")
		}
		if !c.Nullable {
			notes = append(notes, "not null")
		}
		if how, ok := t.Config.PII[c.Name]; ok {
			notes = append(notes, "PII: "+string(how))
		}
		out = append(out, columnRow{c.Name, c.Source.Name, c.Type.String(), strings.Join(notes, ", ")})
	}
	return out
}

// eventText says an event's detail in words, or prints it as it is.
func eventText(e registry.Event) string {
	var d struct {
		From, To, Code, Message, File string
		Version                       int
		Added, Dropped, Changed       []string
		Differing, SourceRows         int64
	}
	if err := json.Unmarshal(e.Detail, &d); err != nil {
		return string(e.Detail)
	}
	switch e.Kind {
	case registry.BudgetStaged, registry.SlotDropped, registry.ConnectorChanged, registry.Partitions, registry.SkipAsked, registry.RecordSkipped: // the detail says it; the first three are of sources
	case registry.StateChanged, registry.SchemaChanged, registry.QuarantineChanged:
		s := d.To
		if d.From != "" && d.From != d.To {
			s = d.From + " → " + d.To
		}
		if d.Message != "" {
			s += ": " + d.Message
		}
		return s
	case registry.MaybeMissing:
		if d.Message != "" {
			return d.Message
		}
	case registry.SchemaVersion:
		parts := []string{fmt.Sprint("version ", d.Version)}
		for _, p := range []struct {
			word  string
			names []string
		}{{"added", d.Added}, {"dropped", d.Dropped}, {"changed", d.Changed}} {
			if len(p.names) > 0 {
				parts = append(parts, p.word+" "+strings.Join(p.names, ", "))
			}
		}
		return strings.Join(parts, ", ")
	case registry.ConfigChanged:
		return fmt.Sprint("version ", d.Version)
	case registry.LeftFiles, registry.CameBack:
		return d.File
	case registry.Reconciled:
		if d.Differing == 0 {
			return human.Exact(d.SourceRows) + " rows, none differs"
		}
		return human.Exact(d.Differing) + " rows differ"
	case registry.Started:
	}
	if string(e.Detail) == "{}" {
		return ""
	}
	return string(e.Detail)
}
