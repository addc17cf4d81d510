package worker_test

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/privacy"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// wrongs is what a run did to the data: rows, changes or versions.
type wrongs struct {
	Lost, Doubled, Revived, History int64
	Said                            []string // each of them, or the first of many
}

func (w *wrongs) add(o wrongs) {
	w.Lost, w.Doubled, w.Revived, w.History = w.Lost+o.Lost, w.Doubled+o.Doubled, w.Revived+o.Revived, w.History+o.History
	w.Said = append(w.Said, o.Said...)
}

func (w *wrongs) say(text string) {
	if len(w.Said) < 20 {
		w.Said = append(w.Said, text)
	}
}

// audit compares source and lake, the layers with each other, bronze with itself, and
// history with the record that the shop's triggers keep.
func (r *rig) audit() wrongs {
	r.t.Helper()
	var w wrongs
	outcomes, err := worker.Compare(r.t.Context(), worker.CompareConfig{
		Source: r.source, Tables: r.tables, DSN: catalog.Secret(r.dsn), TokenKey: tokenKey, Lake: r.lakeCfg, Registry: r.registry, Logger: testLogger(r.t),
	})
	require.NoError(r.t, err)
	for _, o := range outcomes {
		require.NoError(r.t, o.Err, o.Table.ID())
		require.Zero(r.t, o.Result.Unsettled, o.Table.ID())
		w.add(wrongs{Lost: o.Result.Kinds[reconcile.Missing] + o.Result.Kinds[reconcile.Changed], Revived: o.Result.Kinds[reconcile.Extra], History: o.Result.Violations})
		if !o.Result.Equal() {
			w.say(o.Result.Text())
		}
	}
	l, err := lake.Open(r.t.Context(), r.lakeCfg, testLogger(r.t))
	require.NoError(r.t, err)
	defer l.Close()
	for _, t := range r.tables {
		seen := map[string]bool{}
		_, events := r.rows(t.Name.String(), catalog.Bronze)
		for _, e := range events {
			at := e["_generation"] + " " + e["_commit_lsn"] + " " + e["_ordinal"]
			if seen[at] {
				w.Doubled++
				w.say("bronze of " + t.ID() + " has twice what is at " + at)
			}
			seen[at] = true
		}
		if !t.History {
			continue
		}
		for _, d := range r.historyDifferences(l, t) {
			switch {
			case d.Lake == nil:
				w.Lost++
			case d.Oracle == nil:
				w.Doubled++
			default:
				w.History++
			}
			w.say("history of " + t.ID() + ": " + d.String())
		}
	}
	return w
}

// requireAllEqual requires an audit that finds nothing.
func (r *rig) requireAllEqual() {
	r.t.Helper()
	w := r.audit()
	require.Zero(r.t, w.Lost+w.Doubled+w.Revived+w.History, "%s", strings.Join(w.Said, "\n"))
}

// historyDifferences holds the lake's history of a shop table against the audit.
func (r *rig) historyDifferences(l *lake.Lake, t *catalog.Table) []demo.Difference {
	r.t.Helper()
	h, err := worker.OpenHistory(r.t.Context(), l, r.source, t)
	require.NoError(r.t, err)
	masking, err := privacy.NewText([]byte(tokenKey))
	require.NoError(r.t, err)
	mask := func(column, text string) string {
		p, ok := t.PII[column]
		if !ok {
			return text
		}
		out, err := masking.Append(nil, p, []byte(text))
		require.NoError(r.t, err)
		return string(out)
	}
	tracked := slices.DeleteFunc(slices.Clone(h.Columns), func(c string) bool { return !t.Tracks(c) })
	c := demo.Comparison{
		Columns: h.Columns, Mask: mask, MaskKey: func(i int, text string) string { return mask(t.PrimaryKey[i], text) },
		Began: h.FirstRead, SnapshotEnded: h.LastRead,
	}
	ours := func(yield func(demo.Interval, error) bool) {
		for v, err := range h.Versions(r.t.Context()) {
			require.NoError(r.t, err)
			out := demo.Interval{From: v.From, To: v.To, Current: v.Current, FromSnapshot: v.Op == change.Read}
			for i, text := range v.Values {
				value := demo.Value{Null: text == nil, Unknown: v.Unknown != nil && v.Unknown[i]}
				if text != nil {
					value.Text = *text
				}
				out.Values = append(out.Values, value)
			}
			for _, name := range t.PrimaryKey {
				out.Key = append(out.Key, out.Values[slices.Index(h.Columns, name)])
			}
			if !yield(out, nil) {
				return
			}
		}
	}
	conn, err := pgx.Connect(r.t.Context(), r.dsn)
	require.NoError(r.t, err)
	defer conn.Close(context.WithoutCancel(r.t.Context()))
	differences, err := c.Compare(ours, demo.History(r.t.Context(), conn, t.Name.Name, t.PrimaryKey, tracked, h.Columns))
	require.NoError(r.t, err)
	return differences
}
