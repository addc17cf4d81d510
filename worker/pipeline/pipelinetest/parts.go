package pipelinetest

import (
	"pgregory.net/rapid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
)

// Parts cuts a table's log at random; a part may end inside a transaction.
func Parts(t *rapid.T, table *catalog.Table, log []foldtest.Event) []Part {
	schema := foldtest.NewSchema()
	var out []Part
	parts := foldtest.Cut(t, log, rapid.Bool().Draw(t, "whole"))
	for i, part := range parts {
		if len(part) > 0 {
			split := i+1 < len(parts) && foldtest.SameTransaction(part[len(part)-1], parts[i+1][0])
			out = append(out, Part{Table: table, Schema: schema, Events: part, Split: split})
		}
	}
	return out
}

// Delay makes some events of every table come late, some of them twice, and some come
// again that came in time. Both halves of a key move stay together.
func Delay(t *rapid.T, parts []Part) []Part {
	var out []Part
	var tables []*catalog.Table
	late := map[*catalog.Table][]foldtest.Event{}
	for _, p := range parts {
		if late[p.Table] == nil {
			tables = append(tables, p.Table)
			late[p.Table] = []foldtest.Event{}
		}
		at := p.End()
		kept, held := withhold(t, p.Events)
		if p.Events = kept; len(kept) > 0 {
			out = append(out, p)
		}
		late[p.Table] = append(late[p.Table], held...)
		events := late[p.Table]
		if len(events) == 0 || rapid.IntRange(0, 2).Draw(t, "now") > 0 {
			continue
		}
		late[p.Table] = []foldtest.Event{}
		for range rapid.IntRange(1, 2).Draw(t, "times") {
			out = append(out, Part{Table: p.Table, Schema: p.Schema, Events: events, At: at})
		}
	}
	for _, table := range tables {
		if events := late[table]; len(events) > 0 {
			out = append(out, Part{Table: table, Schema: foldtest.NewSchema(), Events: events, At: 1 << 40})
		}
	}
	return out
}

// withhold takes out some events that are to come later, or to come again.
func withhold(t *rapid.T, events []foldtest.Event) (kept, held []foldtest.Event) {
	for i := 0; i < len(events); {
		n := i + 1
		for n < len(events) && events[n].FollowsHalf() {
			n++
		}
		what := rapid.IntRange(0, 5).Draw(t, "delay")
		if what <= 1 {
			held = append(held, events[i:n]...)
		}
		if what >= 1 {
			kept = append(kept, events[i:n]...)
		}
		i = n
	}
	return kept, held
}
