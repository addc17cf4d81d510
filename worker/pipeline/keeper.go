package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// keeper keeps one table's layers: it saves changes to bronze, then folds them
// into current and history.
type keeper struct {
	layers  Layers
	opened  bool
	bronze  LayerState
	current LayerState
	history LayerState
	// folded is when the layers were last brought up to bronze.
	folded time.Time
	// unsure says that a commit's outcome is unknown: read the states again first.
	unsure bool
	lacks  lacks
	// yields reports, when set, that a layer that catches up from bronze is to stop
	// after the piece it has committed.
	yields func() bool
}

// errYields is a fold that stopped between two pieces; the layer goes on from there.
var errYields = errors.New("the fold is put off")

// maxStale bounds how often a fold is made anew because another writer got in
// between; past it the writer is no passer-by but a rival.
const maxStale = 10

// catchUpRows is how many changes at a time a layer that lags takes from bronze.
const catchUpRows = 50_000

// open opens the layers, once their schema is known, and reads their states.
func (k *keeper) open(ctx context.Context, lake Lake, table *catalog.Table, schema *catalog.Schema) error {
	if k.opened && !k.unsure {
		return nil
	}
	if !k.opened {
		layers, err := lake.Open(ctx, table, schema)
		if err != nil {
			return err
		}
		k.layers, k.opened = layers, true
	}
	return k.refresh(ctx)
}

// refresh reads what the layers themselves say.
func (k *keeper) refresh(ctx context.Context) error {
	bronze, err := k.layers.Bronze.State(ctx)
	if err != nil {
		return err
	}
	if behind(bronze, k.bronze) {
		return setBack(bronze, "held every change up to", k.bronze)
	}
	k.bronze = bronze
	if k.layers.Current != nil {
		if k.current, err = k.layers.Current.State(ctx); err != nil {
			return err
		}
	}
	if k.layers.History != nil {
		if k.history, err = k.layers.History.State(ctx); err != nil {
			return err
		}
	}
	// A layer is made of bronze and cannot know more. Before anything is appended,
	// since later that would not show.
	for _, layer := range []LayerState{k.current, k.history} {
		if behind(k.bronze, layer) {
			return setBack(k.bronze, "a layer made of it holds every change up to", layer)
		}
	}
	k.unsure = false
	return nil
}

func behind(s, than LayerState) bool { return s.Cursor.Position.Compare(than.Cursor.Position) < 0 }

// setBack says that bronze holds less than it did: the source may have forgotten the
// difference.
func setBack(bronze LayerState, what string, than LayerState) error {
	at := "it is empty"
	if !bronze.Cursor.IsZero() {
		at = "it stands at " + bronze.Cursor.Position.String()
	}
	return catalog.Errorf(catalog.Conflict, catalog.CodeGap,
		"put bronze back to what it held and start the worker anew; else drop the table's bronze, current and history to have it read anew",
		"bronze was rolled back or replaced: %s, and %s %s", at, what, than.Cursor.Position)
}

// save appends the batches to bronze and, when fold is set, brings the layers up
// to it. Whatever fails, what was committed stands and a repeated save goes on
// from there.
func (k *keeper) save(ctx context.Context, table *catalog.Table, batches []*change.Batch, foldNow bool, now func() time.Time) (BatchRecord, error) {
	rec := BatchRecord{Table: table.Name.String(), ID: uuid.NewString(), From: k.bronze.Cursor}
	batches = k.unsaved(batches)
	count(&rec, batches)
	before := k.bronze
	if len(batches) > 0 {
		to := after(k.bronze, batches)
		c, err := k.layers.Bronze.Append(ctx, batches, to)
		if err != nil {
			k.unsure = true
			return rec, fmt.Errorf("save to bronze: %w", err)
		}
		k.bronze, rec.Bronze = to, c
	}
	rec.To = k.bronze.Cursor
	if foldNow {
		err := k.foldInto(ctx, table, before, batches, &rec)
		if err != nil && !errors.Is(err, errYields) {
			k.unsure = true
			return rec, err
		}
		if err == nil {
			k.folded = now()
		}
	}
	rec.At = now()
	return rec, nil
}

// unsaved leaves out what bronze already has, which comes again after a commit
// whose outcome was unknown.
func (k *keeper) unsaved(batches []*change.Batch) []*change.Batch {
	if k.bronze.Cursor.IsZero() {
		return batches
	}
	var out []*change.Batch
	for _, b := range batches {
		i := 0
		for i < len(b.Changes) && b.Changes[i].Position.Compare(k.bronze.Cursor.Position) <= 0 {
			i++
		}
		b.Changes = b.Changes[i:]
		stale := b.Snapshot == nil || k.bronze.Snapshot != nil && progressOf(b.Snapshot) == progressOf(k.bronze.Snapshot)
		if len(b.Changes) > 0 || !stale {
			out = append(out, b)
		}
	}
	return out
}

type progressKey struct {
	generation uint32
	chunks     int
	done       bool
	keys       int
}

func progressOf(s *catalog.SnapshotProgress) progressKey {
	return progressKey{s.Generation, s.Chunks, s.Done, len(s.Keys)}
}

// after returns the state of a layer once it holds the batches.
func after(s LayerState, batches []*change.Batch) LayerState {
	for _, b := range batches {
		s.Cursor = b.End(s.Cursor)
		if b.Snapshot != nil {
			s.Snapshot = b.Snapshot
		}
		for i := range b.Changes {
			s.CommitTime = max(s.CommitTime, b.Changes[i].CommitTime)
		}
	}
	return s
}

// lagging reports whether a layer is behind bronze.
func (k *keeper) lagging() bool {
	return k.opened && (k.layers.Current != nil && behind(k.current, k.bronze) || k.layers.History != nil && behind(k.history, k.bronze))
}

// foldInto brings both layers up to bronze: from the batches in memory when the
// layer stood where they begin, else from bronze itself.
func (k *keeper) foldInto(ctx context.Context, table *catalog.Table, before LayerState, batches []*change.Batch, rec *BatchRecord) error {
	if k.layers.Current != nil {
		c, err := k.advance(ctx, &k.current, before, batches, func(ctx context.Context, b []*change.Batch, to LayerState) (Commit, error) {
			touched := fold.TouchedCurrent(table, b)
			found, err := k.layers.Current.Find(ctx, touched)
			if err != nil {
				return Commit{}, err
			}
			result := fold.Current(table, k.current.Cursor.Position, b, found)
			if err := k.requestCurrent(ctx, table, result); err != nil {
				return Commit{}, err
			}
			return k.layers.Current.Write(ctx, result, to)
		}, k.layers.Current.State)
		rec.Current = c
		if err != nil {
			return fmt.Errorf("fold into current: %w", err)
		}
	}
	if k.layers.History != nil {
		c, err := k.advance(ctx, &k.history, before, batches, func(ctx context.Context, b []*change.Batch, to LayerState) (Commit, error) {
			cursor := k.history.Cursor.Position
			touched := fold.TouchedHistory(b)
			found, err := k.layers.History.Find(ctx, touched, nil)
			if err != nil {
				return Commit{}, err
			}
			if whole := fold.WholeHistory(cursor, b, found); len(whole) > 0 {
				if found, err = k.layers.History.Find(ctx, touched, whole); err != nil {
					return Commit{}, err
				}
			}
			result := fold.History(table, cursor, b, found)
			if err := k.requestHistory(ctx, table, result); err != nil {
				return Commit{}, err
			}
			return k.layers.History.Write(ctx, result, to)
		}, k.layers.History.State)
		rec.History = c
		if err != nil {
			return fmt.Errorf("fold into history: %w", err)
		}
	}
	return nil
}

type step func(ctx context.Context, batches []*change.Batch, to LayerState) (Commit, error)

// advance brings one layer from its state up to bronze.
func (k *keeper) advance(ctx context.Context, layer *LayerState, before LayerState, batches []*change.Batch, write step,
	state func(context.Context) (LayerState, error),
) (Commit, error) {
	var total Commit
	stale := 0
	for layer.Cursor != k.bronze.Cursor {
		c, err := k.advanceOnce(ctx, layer, before, batches, write)
		total = total.plus(c)
		switch {
		case err == nil:
			stale = 0
		case errors.Is(err, ErrStale) && stale < maxStale:
			// Another writer committed. It may also have rolled the layer back: what
			// the layer itself says counts.
			stale++
			if *layer, err = state(ctx); err != nil {
				return total, err
			}
		case errors.Is(err, ErrStale):
			return total, catalog.Errorf(catalog.Conflict, catalog.CodeLakeConflict,
				"find out what else writes to the table; Lakeweir must be the only one to change its rows",
				"another writer committed to the layer %d times in a row", stale+1)
		default:
			return total, err
		}
	}
	return total, nil
}

func (k *keeper) advanceOnce(ctx context.Context, layer *LayerState, before LayerState, batches []*change.Batch, write step) (Commit, error) {
	if layer.Cursor == before.Cursor && len(batches) > 0 {
		to := LayerState{Cursor: k.bronze.Cursor, CommitTime: k.bronze.CommitTime}
		c, err := write(ctx, batches, to)
		if err == nil {
			*layer = to
		}
		return c, err
	}
	if behind(k.bronze, *layer) {
		return Commit{}, setBack(k.bronze, "a layer made of it holds every change up to", *layer)
	}
	var total Commit
	for b, err := range k.layers.Bronze.Read(ctx, layer.Cursor.Position, k.bronze.Cursor.Position, catchUpRows) {
		if err != nil {
			return total, fmt.Errorf("read bronze: %w", err)
		}
		to := after(*layer, []*change.Batch{b})
		to.Cursor.Epoch = k.bronze.Cursor.Epoch
		c, err := write(ctx, []*change.Batch{b}, to)
		total = total.plus(c)
		if err != nil {
			return total, err
		}
		*layer = to
		if layer.Cursor != k.bronze.Cursor && k.yields != nil && k.yields() {
			return total, errYields
		}
	}
	if layer.Cursor != k.bronze.Cursor {
		if layer.Cursor.Position != k.bronze.Cursor.Position {
			return total, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "",
				"bronze says it holds changes up to %s, but has none after %s", k.bronze.Cursor.Position, layer.Cursor.Position)
		}
		layer.Cursor = k.bronze.Cursor // a new epoch, the same place
	}
	return total, nil
}

func (c Commit) plus(d Commit) Commit {
	c.Rows += d.Rows
	c.Removed += d.Removed
	c.Bytes += d.Bytes
	c.Files += d.Files
	c.Took += d.Took
	if d.SnapshotID != 0 {
		c.SnapshotID, c.Total = d.SnapshotID, d.Total
	}
	return c
}

// count fills in what the batches hold.
func count(rec *BatchRecord, batches []*change.Batch) {
	for _, b := range batches {
		rec.Bytes += int64(b.Size())
		for i := range b.Changes {
			ch := &b.Changes[i]
			rec.Newest = max(rec.Newest, ch.CommitTime)
			switch ch.Op {
			case change.Create:
				rec.Creates++
			case change.Update:
				rec.Updates++
			case change.Delete:
				rec.Deletes++
			case change.Read:
				rec.Reads++
			case change.Truncate:
				rec.Truncates++
			}
		}
		for col, c := range b.Rows.Schema().Columns {
			if n := b.Rows.Count(col, change.Unfit); n > 0 {
				if rec.Unfits == nil {
					rec.Unfits = map[string]int{}
				}
				rec.Unfits[c.Name] += n
				rec.Unfit += n
			}
		}
	}
}
