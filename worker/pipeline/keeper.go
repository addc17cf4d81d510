package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// turn is taken by the one that folds what is larger than may be in memory at once.
	turn   chan struct{}
	myTurn bool
	// unsure says that a commit's outcome is unknown: read the states again first.
	unsure      bool
	lacks       lacks
	remakeBytes int // Limits.RemakeBytes
	// yields reports, when set, that a layer that catches up from bronze is to stop
	// after the piece it has committed.
	yields func() bool
	// whole says that bronze is known to end where a transaction ends.
	whole bool
	// passed is where the reading of the topic stands when that is not in bronze: only
	// what is no row came since. offsetsAt is when bronze was last told.
	passed    *catalog.TopicOffsets
	offsetsAt time.Time
	// wrong are keys whose rows in the layers are to be made anew, once these have come
	// up with bronze; nil for none.
	wrong *fold.KeySet
}

// errYields is a fold that stopped between two pieces; the layer goes on from there.
var errYields = errors.New("the fold is put off")

// maxStale bounds how often a fold is made anew because another writer got in
// between; past it the writer is no passer-by but a rival.
const maxStale = 10

// offsetsEvery is the shortest time between two commits that hold nothing but where the
// reading of a topic stands. Reading such a stretch again is harmless.
const offsetsEvery = time.Minute

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
		// Their states are not known before all of them have been read.
		k.layers, k.opened, k.unsure = layers, true, true
	}
	return k.refresh(ctx)
}

// refresh reads what the layers themselves say.
func (k *keeper) refresh(ctx context.Context) error {
	k.whole = false
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
	k.noteWrong(batches)
	offsets := newestOffsets(batches, k.passed)
	batches, late := k.unsaved(batches)
	late, err := k.admitted(ctx, batches, late)
	if err != nil {
		k.unsure = true
		return rec, fmt.Errorf("look for late changes in bronze: %w", err)
	}
	count(&rec, batches)
	count(&rec, late)
	f := folding{table: table, before: k.bronze, batches: batches, late: late}
	if len(batches)+len(late) > 0 || k.offsetsDue(offsets, now()) {
		to := after(k.bronze, batches)
		if offsets != nil {
			to.Offsets = offsets // also of batches of which bronze has every change
		}
		if len(late) > 0 {
			to.Late++
			to.CommitTime = after(to, late).CommitTime
		}
		c, err := k.layers.Bronze.Append(ctx, slices.Concat(batches, late), to)
		if err != nil {
			k.unsure = true
			return rec, fmt.Errorf("save to bronze: %w", err)
		}
		k.bronze, rec.Bronze = to, c
		offsets, k.offsetsAt = nil, now()
		if n := len(batches); n > 0 {
			k.whole = batches[n-1].Whole
		}
	}
	k.passed = offsets // not before: what failed to be saved has not been passed
	rec.To = k.bronze.Cursor
	if foldNow {
		err := k.foldInto(ctx, &f, &rec)
		if err == nil {
			err = k.putRight(ctx, table, &rec)
		}
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

// newestOffsets returns where the reading stands after the batches.
func newestOffsets(batches []*change.Batch, before *catalog.TopicOffsets) *catalog.TopicOffsets {
	for _, b := range batches {
		if b.Offsets != nil {
			before = b.Offsets
		}
	}
	return before
}

// offsetsDue reports whether where the reading stands is to be saved without changes.
func (k *keeper) offsetsDue(offsets *catalog.TopicOffsets, now time.Time) bool {
	return k.opened && offsets != nil && !offsets.Equal(k.bronze.Offsets) && now.Sub(k.offsetsAt) >= offsetsEvery
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
		if b.Offsets != nil {
			s.Offsets = b.Offsets
		}
		for i := range b.Changes {
			s.CommitTime = max(s.CommitTime, b.Changes[i].CommitTime)
		}
	}
	return s
}

// lagging reports whether a layer is behind bronze.
func (k *keeper) lagging() bool {
	short := func(s LayerState) bool { return behind(s, k.bronze) || s.Late < k.bronze.Late }
	return k.opened && (k.wrong != nil || k.layers.Current != nil && short(k.current) || k.layers.History != nil && short(k.history))
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
