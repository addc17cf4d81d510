package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// parking has the lab's source park, with the DDL log or without.
func (l *lab) parking(logged bool) {
	l.t.Helper()
	l.cfg.Park = true
	if logged {
		require.NoError(l.t, PrepareDDLLog(l.t.Context(), l.cfg))
	}
}

// park takes what a slice says of parking tables.
func (l *lab) park(slice pipeline.Slice) {
	l.t.Helper()
	for _, r := range slice.Replayed { // runs are forgotten once bronze holds what is in them
		l.save(r.Table)
		s := l.store[r.Table]
		s.replayed = append(s.replayed, r)
		if r.Live {
			s.runs = nil
			delete(l.parked, r.Table)
		}
	}
	for _, f := range slice.Faults {
		if f.Parks { // and kept once it holds what came before
			l.save(f.Table)
			l.parked[f.Table] = f
		}
	}
	for _, run := range slice.Parked {
		s := l.store[run.Table]
		require.Contains(l.t, l.parked, run.Table)
		require.Equal(l.t, uint64(len(s.runs)+1), run.Seq, "a hole in the runs")
		require.NotEmpty(l.t, run.Data)
		s.runs = append(s.runs, run)
	}
}

// replay gives the runs of a table back until it is live, or a fault parks it again.
func (l *lab) replay(table string, schema *catalog.Schema, skip ...catalog.Place) {
	l.t.Helper()
	s := l.store[table]
	s.replayed = nil
	s.schema = schema
	before := l.parked[table]
	l.source.Replay(table, pipeline.ParkedRun{}, schema, skip)
	given := 0
	deadline := time.Now().Add(time.Minute)
	for {
		require.True(l.t, time.Now().Before(deadline), "the replay does not end")
		if given < len(s.runs) && (given == 0 || len(s.replayed) > 0 && s.replayed[len(s.replayed)-1].Seq == uint64(given)) {
			l.source.Replay(table, s.runs[given], schema, skip)
			given++
		}
		l.next()
		l.saveAll()
		if now, parks := l.parked[table]; !parks || now.Err != before.Err {
			return
		}
	}
}

// follow is the governed schema of a lake that goes along with an alteration: columns
// that went stay, and are NULL.
func follow(before *catalog.Schema, a *catalog.Alteration) *catalog.Schema {
	out := &catalog.Schema{Definition: a.After, At: a.At}
	for i, c := range before.Columns {
		j := slices.IndexFunc(a.Columns.Columns, func(o catalog.Column) bool { return o.Number == c.Number })
		if j >= 0 && !c.Dropped {
			is := a.Columns.Columns[j]
			is.Was = c.Was
			out.Columns = append(out.Columns, is)
		} else {
			c.Dropped = true
			out.Columns = append(out.Columns, c)
		}
		if slices.Contains(before.Key, i) {
			out.Key = append(out.Key, i)
		}
	}
	for _, c := range a.Columns.Columns {
		if !slices.ContainsFunc(before.Columns, func(o catalog.Column) bool { return o.Number == c.Number }) {
			out.Columns = append(out.Columns, c)
		}
	}
	return out
}

// evolve follows the alteration that a table is parked for, and those behind it, until
// it is live.
func (l *lab) evolve(table string) {
	l.t.Helper()
	for range 20 {
		f, parks := l.parked[table]
		if !parks {
			return
		}
		require.NotNil(l.t, f.Change, "%v", f.Err)
		l.replay(table, follow(l.store[table].schema, f.Change))
	}
	l.t.Fatalf("%s: altered again and again", table)
}

// evolved requires that what was read folds to what the source holds, in the columns that
// it has now.
func (l *lab) evolved(table string) {
	l.t.Helper()
	name := catalog.ParseTableName(table).String()
	schema := l.store[name].schema
	var live []int
	for i, c := range schema.Columns {
		if !c.Dropped {
			live = append(live, i)
		}
	}
	state := l.store[name].folded()
	for k, row := range state {
		cut := make([]string, 0, len(live))
		for _, i := range live {
			v := cellNull
			if i < len(row) {
				v = row[i]
			}
			cut = append(cut, v)
		}
		state[k] = cut
	}
	names := make([]string, len(live))
	for i, col := range live {
		names[i] = quoteIdent(schema.Columns[col].Name)
	}
	require.Equal(l.t, l.live("(select "+strings.Join(names, ", ")+" from "+table+") x"), printed(state))
}

// together runs statements in a transaction of their own.
func (l *lab) together(statements ...string) {
	l.t.Helper()
	tx, err := l.db.Begin(l.t.Context())
	require.NoError(l.t, err)
	for _, s := range statements {
		_, err := tx.Exec(l.t.Context(), s)
		require.NoError(l.t, err, s)
	}
	require.NoError(l.t, tx.Commit(context.WithoutCancel(l.t.Context())))
}
