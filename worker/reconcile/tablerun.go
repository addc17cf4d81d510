package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// tableRun is the comparison of one table.
type tableRun struct {
	*Reconciler
	table  *catalog.Table
	source *source
	schema *catalog.Schema   // the source's columns as the lake has them, the first of its rows' columns
	forms  []typemap.KeyForm // of the key's columns
	layers pipeline.Layers
	expect *expectation
	result *Result
	wrong  violations
	// lostKeys are the texts of keys of which the lake may have no row.
	lostKeys map[digest][]string
	lacked   int64 // rows compared although the lake lacks values of them
}

// moment starts a transaction at the source and brings the lake up to it. The
// first time it also finds the columns on both sides.
func (t *tableRun) moment(ctx context.Context) (moment, *cut, error) {
	if err := t.read(ctx, t.table); err != nil {
		return moment{}, nil, err
	}
	m, err := t.source.begin(ctx, t.table.Name)
	if err != nil {
		return m, nil, err
	}
	c, err := t.pin(ctx, t.source, t.table, m)
	if err != nil || t.schema != nil {
		return m, c, err
	}
	return m, c, t.prepare(ctx, c.bronze)
}

// prepare finds the columns on both sides, and opens the layers, which exist.
func (t *tableRun) prepare(ctx context.Context, bronze View) error {
	all, err := sourceColumns(bronze, t.table)
	if err != nil {
		return err
	}
	have, err := t.source.columns(ctx, t.table.Name)
	if err != nil {
		return err
	}
	live := withoutDropped(all)
	var ordered []sourceColumn
	for _, c := range live.Columns {
		i := slices.IndexFunc(have, func(s sourceColumn) bool { return s.name == c.Name })
		if i < 0 {
			return catalog.Errorf(catalog.Conflict, catalog.CodeSchemaChanged, "decide how the lake is to follow the source, then compare again",
				"the lake has a column %q of %s that the source has not", c.Name, t.table.ID())
		}
		ordered = append(ordered, have[i])
	}
	for _, s := range have {
		switch {
		case live.Index(s.name) >= 0:
		case s.generated:
			t.note("column %s is generated and not replicated", s.name)
		default:
			t.wrong.add(digest{}, "the source has a column %s that the lake has not", s.name)
		}
	}
	for _, c := range ordered {
		if p := t.table.PII[c.name]; p != "" && t.cfg.Masking == nil {
			return catalog.Errorf(catalog.Invalid, catalog.CodePrivacyKey, "set token_key in source.yaml", "column %q of %s is masked and there is no tokenisation key to compare it with", c.name, t.table.ID())
		}
	}
	for _, col := range all.Key {
		form := typemap.KeyFormOf(ordered[col].source)
		if t.table.PII[ordered[col].name] != "" {
			form = typemap.KeyExact // a token is only itself
		}
		t.forms = append(t.forms, form)
		if t.table.PII[ordered[col].name] == "" {
			// Or 1.0 and 1.00 would be two keys here.
			all.Columns[col].Source, live.Columns[col].Source = ordered[col].source, ordered[col].source
		}
	}
	if t.layers, err = t.cfg.Lake.Open(ctx, t.table, all); err != nil {
		return err
	}
	t.schema = live
	t.expect = newExpectation(t.table, ordered, t.cfg.Masking)
	return nil
}

func (t *tableRun) note(format string, args ...any) {
	t.result.Notes = append(t.result.Notes, fmt.Sprintf(format, args...))
}

// keyed compares a table that has a key, round by round, and then the layers with
// each other.
func (t *tableRun) keyed(ctx context.Context) error {
	var pending map[digest]struct{} // nil: every key
	var from catalog.Position       // nothing before it was unseen in an earlier round
	var first *cut
	for round := 1; ; round++ {
		last := round == t.cfg.Rounds
		p, err := t.round(ctx, last, pending, from)
		if err != nil {
			return err
		}
		t.result.Rounds = round
		if first == nil {
			first = p.cut
			t.result.At, t.result.LSN, t.result.Cursor = p.moment.at, p.moment.lsn.String(), p.cut.cursor.String()
		}
		if !p.over.all {
			from, pending = p.over.from, p.next()
		}
		if pending != nil && len(pending) == 0 {
			break
		}
		if last && pending == nil {
			return catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile, "try again later", "table %s was truncated or rewritten in every round", t.table.ID())
		}
		if last {
			t.result.Unsettled = int64(len(pending))
			break
		}
	}
	if t.cfg.Quick {
		t.tell(nil)
		return nil
	}
	if t.cfg.Turns != nil {
		select {
		case t.cfg.Turns <- struct{}{}:
			defer func() { <-t.cfg.Turns }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return t.checkLayers(ctx, first)
}

// round compares the pending keys at one moment.
func (t *tableRun) round(ctx context.Context, last bool, pending map[digest]struct{}, from catalog.Position) (*pass, error) {
	m, c, err := t.moment(ctx)
	if err != nil {
		return nil, err
	}
	p := &pass{tableRun: t, moment: m, cut: c, pending: pending, lacking: map[digest]struct{}{}, last: last}
	if p.over, err = findOvertaken(ctx, t.layers.Bronze, m, from, p.cut.cursor.Position, t.forms); err != nil {
		return nil, err
	}
	if !p.over.all {
		if err := p.compare(ctx); err != nil {
			return nil, err
		}
	}
	return p, t.source.end(ctx)
}

// tell puts the names of keys to what was found wrong, and the keys that were asked for
// in the result.
func (t *tableRun) tell(names map[digest][]string) {
	t.result.Violations = t.wrong.count
	for _, v := range t.wrong.shown {
		what := v.what
		if texts := names[v.key]; texts != nil {
			what = strings.Replace(what, ":", " of "+nameKey(t.table, texts)+":", 1)
		}
		t.result.ViolationsAre = append(t.result.ViolationsAre, what)
	}
	if t.cfg.Keys {
		t.result.addViolations(names)
	}
}

// addViolations adds the keys of violations; some may be among those that differ.
func (r *Result) addViolations(names map[digest][]string) {
	differs := map[string]int{}
	for i, k := range r.Keys {
		differs[strings.Join(k.Lake, "\x00")] = i
	}
	for _, key := range slices.SortedFunc(maps.Keys(names), digest.compare) {
		texts := names[key]
		if texts == nil {
			continue
		}
		if i, both := differs[strings.Join(texts, "\x00")]; both {
			r.Keys[i].Violated = true
		} else if len(r.Keys) < MaxKeys {
			r.Keys = append(r.Keys, DifferingKey{Kind: Violation, Lake: texts, Violated: true})
		}
	}
}

// keyTexts copies the texts of a row's key; nil when one is NULL.
func (t *tableRun) keyTexts(row rowText) []string { return rowTexts(row, t.schema.Key) }

func rowTexts(row rowText, columns []int) []string {
	out := make([]string, len(columns))
	for i, col := range columns {
		if row[col] == nil {
			return nil
		}
		out[i] = string(row[col])
	}
	return out
}
