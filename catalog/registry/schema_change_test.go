package registry_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

func place(n uint64) catalog.Place {
	return catalog.Place{Position: catalog.Position{Generation: 1, Commit: catalog.LSN(n), Ordinal: 2}}
}

func definition(columns ...string) *catalog.Definition {
	d := &catalog.Definition{Name: catalog.TableName{Schema: "public", Name: "orders"}, Key: []string{"id"}}
	for i, name := range columns {
		d.Columns = append(d.Columns, catalog.ColumnDefinition{Name: name, Number: i + 1, Type: catalog.SourceType{Name: "text", Base: "text", Modifier: -1}, Nullable: i > 0})
	}
	return d
}

// renamed is a change that has everything set.
func renamed(at catalog.Place) registry.SchemaChange {
	before, after := definition("id", "note"), definition("id", "remark")
	return registry.SchemaChange{
		Table: "public.orders", At: at, Before: before, After: after,
		Changes:  []catalog.SchemaChange{{Kind: catalog.ColumnRenamed, Column: "note", Before: &before.Columns[1], After: &after.Columns[1], Rewrite: catalog.RewriteNone}},
		Evidence: registry.Evidence{FoundBy: "relation", Columns: []string{"note"}, Places: []string{at.String()}, Codes: []catalog.Code{catalog.CodeSchemaChanged}},
	}
}

// judged is what the policies say of a change.
func judged(v catalog.Verdict) catalog.Decision {
	return catalog.Decide([]catalog.Judgement{
		{Ruling: catalog.Ruling{Verdict: catalog.Evolve, Rule: "label_added", Reason: "a label more"}},
		{Ruling: catalog.Ruling{Verdict: v, Rule: "column_renamed", Reason: "a person says how"}},
	})
}

func state(t *testing.T, b *bundle, id int64) registry.ChangeState {
	t.Helper()
	c, err := b.SchemaChange(t.Context(), id)
	require.NoError(t, err)
	return c.State
}

func TestASchemaChangeIsKeptAsItWasFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	want := renamed(place(0x10))
	got, err := b.RecordSchemaChange(ctx, "shop", want)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), got.FoundAt, time.Hour)
	want.Source, want.State = "shop", registry.ChangePending
	require.Empty(t, cmp.Diff(&want, got, cmpopts.IgnoreFields(registry.SchemaChange{}, "ID", "FoundAt", "Since")))

	gone := registry.SchemaChange{Table: "public.payments", At: catalog.Place{Offsets: &catalog.TopicOffsets{Topic: "shop.public.payments", Order: "o", Partitions: []catalog.PartitionOffset{{Next: 7}}}}}
	dropped, err := b.RecordSchemaChange(ctx, "shop", gone)
	require.NoError(t, err)
	require.Nil(t, dropped.After)
	require.Nil(t, dropped.Before)
	require.Equal(t, gone.At, dropped.At)

	pending, err := b.PendingSchemaChanges(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []registry.SchemaChange{*got, *dropped}, pending)
	pending, err = b.PendingSchemaChanges(ctx, "other")
	require.NoError(t, err)
	require.Empty(t, pending)

	_, err = b.RecordSchemaChange(ctx, "shop", registry.SchemaChange{Table: "public.nobody"})
	require.Equal(t, catalog.CodeNoTable, catalog.Public(err).Code)
	_, err = b.SchemaChange(ctx, 4711)
	require.Equal(t, catalog.CodeNoSchemaChange, catalog.Public(err).Code)
}

func TestAChangeThatIsFoundAgainIsTheSame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	var ids [8]int64
	g := new(errgroup.Group) // as a worker and the one that it replaces
	for i := range ids {
		g.Go(func() error {
			c, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x10)))
			if err == nil {
				ids[i] = c.ID
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	for _, id := range ids {
		require.Equal(t, ids[0], id)
	}
	require.NoError(t, b.JudgeSchemaChange(ctx, ids[0], judged(catalog.Hold), nil, "policies"))
	again, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x10)))
	require.NoError(t, err)
	require.Equal(t, registry.ChangeHeld, again.State, "whoever finds it again learns what was decided")

	elsewhere := renamed(place(0x10))
	elsewhere.After = definition("id", "note", "more")
	other, err := b.RecordSchemaChange(ctx, "shop", elsewhere)
	require.NoError(t, err)
	require.NotEqual(t, ids[0], other.ID)
	require.Equal(t, registry.ChangeSuperseded, state(t, b, ids[0]), "the source has changed again before anybody said a word")

	back, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x10)))
	require.NoError(t, err)
	require.NotEqual(t, ids[0], back.ID, "what was superseded is decided anew")
	require.Equal(t, registry.ChangePending, back.State)
	later, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x20)))
	require.NoError(t, err)
	require.NotEqual(t, back.ID, later.ID)
	require.Equal(t, registry.ChangePending, state(t, b, back.ID), "another place is another change")

	require.NoError(t, b.ApproveSchemaChange(ctx, later.ID, "ann", "", nil))
	require.NoError(t, b.MarkSchemaApplied(ctx, later.ID))
	again, err = b.RecordSchemaChange(ctx, "shop", renamed(place(0x20)))
	require.NoError(t, err)
	require.Equal(t, later.ID, again.ID, "a worker that dies between the lake and its note finds that it may follow")
	require.Equal(t, registry.ChangeApplied, again.State)
}

func TestEveryWordOnAChangeIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	c, err := b.RecordSchemaChange(ctx, "shop", renamed(place(0x10)))
	require.NoError(t, err)
	decision, input := judged(catalog.Hold), json.RawMessage(`{"table": "public.orders"}`)
	require.NoError(t, b.JudgeSchemaChange(ctx, c.ID, decision, input, "policies 3f2a"))
	mappings := []registry.ColumnMapping{{Column: "note", Mapping: catalog.MapRename}, {Column: "x", Mapping: catalog.MapNewColumn, Name: "x_text"}}
	require.NoError(t, b.ApproveSchemaChange(ctx, c.ID, "ann", "as agreed\x00", mappings))
	require.NoError(t, b.MarkSchemaApplied(ctx, c.ID))
	require.NoError(t, b.MarkSchemaApplied(ctx, c.ID), "a second time changes nothing")

	got, err := b.SchemaChange(ctx, c.ID)
	require.NoError(t, err)
	require.Equal(t, registry.ChangeApplied, got.State)
	require.False(t, got.AppliedAt.IsZero())
	want := []registry.SchemaDecision{
		{Verdict: "hold", Rule: "column_renamed", Judged: &decision, Input: input, Actor: "policies 3f2a", Reason: "a person says how"},
		{Verdict: registry.Approve, Actor: "ann", Reason: "as agreed�", Mappings: mappings},
	}
	require.Empty(t, cmp.Diff(want, got.Decisions, cmpopts.IgnoreFields(registry.SchemaDecision{}, "At")))

	history, err := b.SchemaChanges(ctx, "shop", "public.orders")
	require.NoError(t, err)
	require.Len(t, history, 1)
	require.Equal(t, got.Decisions[1:], history[0].Decisions, "lists have the newest word")

	d, err := b.Table(ctx, "shop", "public.orders")
	require.NoError(t, err)
	var told []string
	for i := range d.Events {
		if e := d.Events[len(d.Events)-1-i]; e.Kind == registry.SchemaChanged {
			var detail struct{ From, To, By, Message string }
			require.NoError(t, json.Unmarshal(e.Detail, &detail))
			told = append(told, fmt.Sprintf("%s→%s by %s: %s", detail.From, detail.To, detail.By, detail.Message))
		}
	}
	require.Equal(t, []string{
		"→pending by : ", "pending→held by policies 3f2a: a person says how", "held→approved by ann: as agreed�", "approved→applied by : ",
	}, told)
}

// TestWhoMayDecideWhen walks a change into each state and lets everybody say a word.
func TestWhoMayDecideWhen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	words := map[string]func(int64) error{
		"evolve":     func(id int64) error { return b.JudgeSchemaChange(ctx, id, judged(catalog.Evolve), nil, "p") },
		"hold":       func(id int64) error { return b.JudgeSchemaChange(ctx, id, judged(catalog.Hold), nil, "p") },
		"quarantine": func(id int64) error { return b.JudgeSchemaChange(ctx, id, judged(catalog.Quarantine), nil, "p") },
		"approve":    func(id int64) error { return b.ApproveSchemaChange(ctx, id, "ann", "", nil) },
		"reject":     func(id int64) error { return b.RejectSchemaChange(ctx, id, "ann", "") },
		"apply":      func(id int64) error { return b.MarkSchemaApplied(ctx, id) },
		"supersede":  func(id int64) error { return b.SupersedeSchemaChange(ctx, id, "it changed back") },
	}
	const no = registry.ChangeState("")
	for i, c := range []struct {
		path []string // to the state
		then map[string]registry.ChangeState
	}{
		{nil, map[string]registry.ChangeState{"evolve": "evolving", "hold": "held", "quarantine": "quarantined", "approve": "approved", "reject": "rejected", "apply": no, "supersede": "superseded"}},
		{[]string{"evolve"}, map[string]registry.ChangeState{"evolve": "evolving", "hold": "held", "quarantine": "quarantined", "approve": no, "reject": "rejected", "apply": "applied", "supersede": "superseded"}},
		{[]string{"hold"}, map[string]registry.ChangeState{"evolve": "evolving", "hold": "held", "quarantine": "quarantined", "approve": "approved", "reject": "rejected", "apply": no, "supersede": "superseded"}},
		{[]string{"quarantine"}, map[string]registry.ChangeState{"evolve": "evolving", "hold": "held", "quarantine": "quarantined", "approve": "approved", "reject": "rejected", "apply": no, "supersede": "superseded"}},
		{[]string{"hold", "approve"}, map[string]registry.ChangeState{"evolve": no, "hold": no, "quarantine": no, "approve": "approved", "reject": "rejected", "apply": "applied", "supersede": "superseded"}},
		{[]string{"hold", "reject"}, map[string]registry.ChangeState{"evolve": no, "hold": no, "quarantine": no, "approve": "approved", "reject": "rejected", "apply": no, "supersede": "superseded"}},
		{[]string{"approve", "apply"}, map[string]registry.ChangeState{"evolve": no, "hold": no, "quarantine": no, "approve": no, "reject": no, "apply": "applied", "supersede": no}},
		{[]string{"supersede"}, map[string]registry.ChangeState{"evolve": no, "hold": no, "quarantine": no, "approve": no, "reject": no, "apply": no, "supersede": "superseded"}},
	} {
		for word, want := range c.then {
			change := renamed(place(uint64(0x100 * (i + 1))))
			change.After = definition("id", word)
			found, err := b.RecordSchemaChange(ctx, "shop", change)
			require.NoError(t, err)
			for _, w := range c.path {
				require.NoError(t, words[w](found.ID))
			}
			before := state(t, b, found.ID)
			err = words[word](found.ID)
			if want == no {
				require.Equal(t, catalog.CodeSchemaChangeState, catalog.Public(err).Code, "%v, then %s", c.path, word)
				require.Equal(t, catalog.Conflict, catalog.Public(err).Kind)
				require.Equal(t, before, state(t, b, found.ID), "%v, then %s", c.path, word)
				continue
			}
			require.NoError(t, err, "%v, then %s", c.path, word)
			require.Equal(t, want, state(t, b, found.ID), "%v, then %s", c.path, word)
		}
	}
	for word, say := range words {
		require.Equal(t, catalog.CodeNoSchemaChange, catalog.Public(say(4711)).Code, word)
	}
	require.Error(t, b.JudgeSchemaChange(ctx, 1, catalog.Decision{Verdict: "maybe"}, nil, "p"))
	require.Error(t, b.JudgeSchemaChange(ctx, 1, judged(catalog.Hold), json.RawMessage("{"), "p"))
	open, err := b.OpenSchemaChanges(ctx, "shop")
	require.NoError(t, err)
	for _, c := range open {
		require.False(t, c.State.Ended())
	}
}
