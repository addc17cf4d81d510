package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
	"github.com/lakeweir/lakeweir/worker"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/lake"
	"github.com/lakeweir/lakeweir/worker/privacy"
)

// proof proves that the demo's lake equals its source.
type proof struct {
	*shop
	unequal bool // something differed
}

func newProof(s *shop) *proof { return &proof{shop: s} }

// showDifferences is how many differences of a table are shown.
const showDifferences = 5

// verdict is the error of a proof that failed.
func (p *proof) verdict() error {
	if !p.unequal {
		return nil
	}
	return catalog.Errorf(catalog.Invalid, catalog.CodeUnequal, "the differences are listed above, table by table", "source and lake differ")
}

// during compares twice while writing goes on, a third and two thirds in.
func (p *proof) during(ctx context.Context, duration time.Duration) error {
	start := time.Now()
	var errs []error
	for i := range 2 {
		select {
		case <-ctx.Done():
			return errors.Join(errs...)
		case <-time.After(time.Until(start.Add(duration * time.Duration(i+1) / 3))):
		}
		p.say("verify    while writing, %d of 2", i+1)
		errs = append(errs, p.reconcile(ctx, true))
	}
	return errors.Join(errs...)
}

// final compares everything once writing is over: rows, layers, and history
// against the oracle.
func (p *proof) final(ctx context.Context) error {
	p.say("verify    at the end")
	return errors.Join(p.reconcile(ctx, false), p.oracle(ctx))
}

func (p *proof) reconcile(ctx context.Context, quick bool) error {
	cfg := worker.CompareConfig{
		Source: p.source, Tables: p.tables, DSN: p.dsn, TokenKey: p.tokenKey, Lake: p.lake, Registry: p.registry,
		Parallel: 2, Logger: p.app.Log,
	}
	cfg.Options.Quick = quick
	outcomes, err := worker.Compare(ctx, cfg)
	if err != nil {
		return err
	}
	var errs []error
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, fmt.Errorf("compare %s: %w", o.Table.ID(), o.Err))
			p.say("  %s  not compared: %s", o.Table.Name, catalog.Public(o.Err).Error())
			continue
		}
		p.say("  %s", o.Result.Line())
		if !o.Result.Equal() {
			for _, d := range o.Result.Differences[:min(len(o.Result.Differences), showDifferences)] {
				p.say("    %s %s", d.Kind, d.Key)
			}
			for _, v := range o.Result.ViolationsAre[:min(len(o.Result.ViolationsAre), showDifferences)] {
				p.say("    %s", v)
			}
			p.unequal = true
		}
	}
	return errors.Join(errs...)
}

// oracle holds the lake's history against what triggers recorded at the source.
func (p *proof) oracle(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.dsn.Reveal())
	if err != nil {
		return fmt.Errorf("connect to the shop: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var commitTimes string
	if err := conn.QueryRow(ctx, "show track_commit_timestamp").Scan(&commitTimes); err != nil {
		return err
	}
	if commitTimes != "on" {
		p.say("  history is not compared with the audit: the server has track_commit_timestamp = off")
		return nil
	}
	l, err := lake.Open(ctx, p.lake, p.app.Log)
	if err != nil {
		return err
	}
	defer l.Close()
	var errs []error
	for _, t := range p.tables {
		if !t.History {
			continue
		}
		h := &historyCheck{proof: p, lake: l, conn: conn, table: t}
		differences, err := h.run(ctx)
		if err != nil {
			p.app.Log.ErrorContext(ctx, "history not compared with the audit", "table", t.ID(), "error", err)
			errs = append(errs, fmt.Errorf("compare the history of %s with the audit: %w", t.ID(), err))
			continue
		}
		p.say("  %s  history: audit=%d lake=%d differing=%d", t.Name, h.oracleRows, h.lakeRows, len(differences))
		for _, d := range differences[:min(len(differences), showDifferences)] {
			p.say("    %s", d)
		}
		if len(differences) > 0 {
			p.unequal = true
		}
	}
	return errors.Join(errs...)
}

// historyCheck compares one table's history with the audit.
type historyCheck struct {
	*proof
	lake  *lake.Lake
	conn  *pgx.Conn
	table *catalog.Table

	lakeRows, oracleRows int
}

func (h *historyCheck) run(ctx context.Context) ([]demo.Difference, error) {
	history, err := worker.OpenHistory(ctx, h.lake, h.source, h.table)
	if err != nil {
		return nil, err
	}
	var tracked []string
	for _, name := range history.Columns {
		if h.table.Tracks(name) {
			tracked = append(tracked, name)
		}
	}
	mask, err := h.mask()
	if err != nil {
		return nil, err
	}
	c := demo.Comparison{
		Columns: history.Columns, Mask: mask,
		MaskKey: func(i int, text string) string { return mask(h.table.PrimaryKey[i], text) },
		Began:   history.FirstRead, SnapshotEnded: history.LastRead,
	}
	oracle := demo.History(ctx, h.conn, h.table.Name.Name, h.table.PrimaryKey, tracked, history.Columns)
	return c.Compare(h.versions(ctx, history), counted(oracle, &h.oracleRows))
}

// mask returns what the lake shows instead of a column's text.
func (h *historyCheck) mask() (func(column, text string) string, error) {
	var masking *privacy.Text
	if len(h.table.PII) > 0 {
		var err error
		if masking, err = privacy.NewText([]byte(h.tokenKey.Reveal())); err != nil {
			return nil, err
		}
	}
	return func(column, text string) string {
		protection, ok := h.table.PII[column]
		if !ok {
			return text
		}
		out, err := masking.Append(nil, protection, []byte(text))
		if err != nil {
			return "unmaskable"
		}
		return string(out)
	}, nil
}

func counted(seq iter.Seq2[demo.Interval, error], n *int) iter.Seq2[demo.Interval, error] {
	return func(yield func(demo.Interval, error) bool) {
		for v, err := range seq {
			*n++
			if !yield(v, err) {
				return
			}
		}
	}
}

// versions yields the lake's versions as the audit's are.
func (h *historyCheck) versions(ctx context.Context, history *worker.History) iter.Seq2[demo.Interval, error] {
	return func(yield func(demo.Interval, error) bool) {
		for v, err := range history.Versions(ctx) {
			h.lakeRows++
			out := demo.Interval{From: v.From, To: v.To, Current: v.Current, FromSnapshot: v.Op == change.Read}
			for i, text := range v.Values {
				if text == nil {
					out.Values = append(out.Values, demo.Value{Null: true, Unknown: v.Unknown != nil && v.Unknown[i]})
				} else {
					out.Values = append(out.Values, demo.Value{Text: *text})
				}
			}
			if err == nil {
				for _, name := range h.table.PrimaryKey {
					out.Key = append(out.Key, out.Values[slices.Index(history.Columns, name)])
				}
			}
			if !yield(out, err) {
				return
			}
		}
	}
}
