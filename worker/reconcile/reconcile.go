package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Config is what a Reconciler works with.
type Config struct {
	Source *catalog.Source
	DSN    catalog.Secret // the source's resolved connection
	Lake   Lake
	// Masking is how personal columns are masked in the lake; may be nil when there
	// are none.
	Masking Masking
	// Wait is how long a table may take to come up with the source, in each round;
	// default 2 min.
	Wait time.Duration
	// Rounds is how often keys that changed meanwhile are looked at; default 5.
	Rounds int
	// Details is how many differing keys are shown with their values; default 20.
	Details int
	// Keys has the keys of differing rows be in the result, up to MaxKeys, for whoever
	// wants to have them read again.
	Keys bool
	// Quick leaves out what is checked within the lake: bronze, history, and
	// whether bronze folded anew gives the layers.
	Quick bool
	// RefoldBytes bounds the memory of folding bronze anew: a table that needs more
	// is folded in parts, for which bronze is read again. Default 256 MiB.
	RefoldBytes int
	// Turns, when not nil, bounds how many tables have their layers checked at once:
	// as many as it has room for. Comparing with the source is mostly waiting.
	Turns chan struct{}
	// Poll is how often the lake is asked how far it has come; default 100 ms.
	Poll time.Duration
	// Through, when not nil, is up to where the worker has said that a table's bronze
	// is complete. The slot knows that of the table alone that has come least far, so
	// without it no table can be compared while one has stopped. An error ends the
	// waiting, such as that the table has stopped itself.
	Through func(ctx context.Context, table *catalog.Table) (catalog.LSN, error)
	Logger  *slog.Logger
	Clock   func() time.Time // default time.Now
}

// Reconciler compares the tables of one source. Use one for one call at a time.
type Reconciler struct {
	cfg Config
}

// New returns a Reconciler; it does no I/O.
func New(cfg Config) *Reconciler {
	if cfg.Wait == 0 {
		cfg.Wait = 2 * time.Minute
	}
	if cfg.Rounds == 0 {
		cfg.Rounds = 5
	}
	if cfg.Details == 0 {
		cfg.Details = 20
	}
	if cfg.RefoldBytes == 0 {
		cfg.RefoldBytes = 256 << 20
	}
	if cfg.Poll == 0 {
		cfg.Poll = 100 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now //nolint:forbidigo // the one place where the real clock comes in
	}
	return &Reconciler{cfg: cfg}
}

// Table compares one table. An error means that nothing could be said, or not
// everything; that the sides differ is no error.
func (r *Reconciler) Table(ctx context.Context, table *catalog.Table) (*Result, error) {
	start := r.cfg.Clock()
	src, err := openSource(ctx, r.cfg.Source.Name, r.cfg.DSN)
	if err != nil {
		return nil, err
	}
	defer src.close(ctx)
	run := &tableRun{Reconciler: r, table: table, source: src, result: &Result{Table: table.Name.String(), Kinds: map[Kind]int64{}, Unfit: map[string]int64{}}}
	if table.HasKey() && (table.Current || table.History) {
		err = run.keyed(ctx)
	} else {
		err = run.keyless(ctx)
	}
	run.result.Took = r.cfg.Clock().Sub(start)
	if err != nil {
		return nil, err
	}
	return run.result, nil
}

// until asks ok again and again, for as long as Wait; then it fails with why.
func (r *Reconciler) until(ctx context.Context, ok func(context.Context) (bool, error), why func() *catalog.Error) error {
	within, cancel := context.WithTimeoutCause(ctx, r.cfg.Wait, errTooLate)
	defer cancel()
	tick := time.NewTicker(r.cfg.Poll)
	defer tick.Stop()
	for {
		done, err := ok(within)
		switch {
		case done:
			return nil
		case errors.Is(context.Cause(within), errTooLate):
			return why()
		case err != nil:
			return err
		}
		select {
		case <-within.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return why()
		case <-tick.C:
		}
	}
}

var errTooLate = errors.New("the lake did not catch up in time")

// cut is one state of a table's layers: those that are kept stand at one cursor,
// and bronze at or after it.
type cut struct {
	bronze, current, history View
	bronzeCursor             catalog.Position
	cursor                   catalog.Cursor
}

// read waits until the table's existing rows have been read. A moment before that
// could not be compared: what changed until the table was first listened to stands
// in no event.
func (r *Reconciler) read(ctx context.Context, table *catalog.Table) error {
	where := "the lake has no table for it yet"
	return r.until(ctx, func(ctx context.Context) (bool, error) {
		bronze, err := r.cfg.Lake.View(ctx, table, catalog.Bronze)
		if err != nil {
			return false, unlessAbsent(err)
		}
		state, err := bronze.State()
		if err != nil {
			return false, err
		}
		where = "its existing rows are still being read"
		return state.Snapshot != nil && state.Snapshot.Done, nil
	}, r.late(table, &where))
}

// late is the error of a table that did not come as far as it must.
func (r *Reconciler) late(table *catalog.Table, where *string) func() *catalog.Error {
	return func() *catalog.Error {
		return catalog.Errorf(catalog.Unavailable, catalog.CodeReconcile,
			"see lakeweir status: the source must be running, and the table neither stopped nor far behind; --wait gives it more time",
			"the lake did not come up with table %s within %s: %s", table.ID(), r.cfg.Wait, *where)
	}
}

// pin finds a cut in which everything is that the source had at the moment.
func (r *Reconciler) pin(ctx context.Context, src *source, table *catalog.Table, m moment) (*cut, error) {
	var where string
	err := r.until(ctx, func(ctx context.Context) (bool, error) {
		through, known, err := r.confirmed(ctx, src)
		if err != nil {
			return false, err
		}
		if !known {
			where = "the source has no replication slot " + r.cfg.Source.Slot
			return false, nil
		}
		if through < m.lsn && r.cfg.Through != nil {
			said, err := r.cfg.Through(ctx, table)
			if err != nil {
				return false, err
			}
			through = max(through, said)
		}
		where = "the source is at " + m.lsn.String() + ", bronze is known to be complete up to " + through.String()
		return through >= m.lsn, nil
	}, r.late(table, &where))
	if err != nil {
		return nil, err
	}
	bronze, state, err := r.view(ctx, table, catalog.Bronze)
	if err != nil {
		return nil, err
	}
	c := &cut{bronze: bronze, bronzeCursor: state.Cursor.Position, cursor: state.Cursor}
	if !table.HasKey() {
		return c, nil
	}
	least := state.Cursor.Position // what the layers must reach
	return c, r.until(ctx, func(ctx context.Context) (bool, error) {
		ok, at, err := r.pinLayers(ctx, table, c, least)
		where = at
		return ok, err
	}, r.late(table, &where))
}

// confirmed returns up to where bronze is known to be complete by what the slot may
// forget; false when there is no slot. A connector's slot says what is in Kafka, which
// is nothing about the lake: there only the worker knows.
func (r *Reconciler) confirmed(ctx context.Context, src *source) (catalog.LSN, bool, error) {
	if r.cfg.Source.Capture == catalog.Debezium {
		if r.cfg.Through == nil {
			return 0, false, catalog.Errorf(catalog.Invalid, catalog.CodeReconcile, "name the registry with --registry",
				"how far the lake has come with source %s is known to the registry alone", r.cfg.Source.Name)
		}
		return 0, true, nil
	}
	through, err := src.confirmed(ctx, r.cfg.Source.Slot)
	return through, through > 0, err
}

// pinLayers takes the layers as they are, when they have come far enough and stand
// at one cursor; else it says where they stand.
func (r *Reconciler) pinLayers(ctx context.Context, table *catalog.Table, c *cut, least catalog.Position) (ok bool, where string, err error) {
	var states []pipeline.LayerState
	for _, l := range []struct {
		kept  bool
		layer catalog.Layer
		view  *View
	}{{table.Current, catalog.Current, &c.current}, {table.History, catalog.History, &c.history}} {
		if !l.kept {
			continue
		}
		view, state, err := r.view(ctx, table, l.layer)
		if err != nil {
			return false, "", err
		}
		if state.Cursor.Position.Compare(least) < 0 {
			return false, string(l.layer) + " is at " + state.Cursor.Position.String() + ", bronze at " + least.String(), nil
		}
		*l.view = view
		states = append(states, state)
	}
	for _, s := range states {
		if s.Cursor != states[0].Cursor {
			return false, "current and history did not stand at one cursor", nil
		}
		c.cursor = s.Cursor
	}
	if c.cursor.Position.Compare(c.bronzeCursor) > 0 { // bronze has moved on as well
		view, state, err := r.view(ctx, table, catalog.Bronze)
		if err != nil {
			return false, "", err
		}
		c.bronze, c.bronzeCursor = view, state.Cursor.Position
	}
	return true, "", nil
}

func (r *Reconciler) view(ctx context.Context, table *catalog.Table, layer catalog.Layer) (View, pipeline.LayerState, error) {
	v, err := r.cfg.Lake.View(ctx, table, layer)
	if err != nil {
		return nil, pipeline.LayerState{}, err
	}
	state, err := v.State()
	return v, state, err
}

// unlessAbsent lets a table that does not exist yet be waited for.
func unlessAbsent(err error) error {
	if e, ok := errors.AsType[*catalog.Error](err); ok && e.Code == catalog.CodeLakeNoTable {
		return nil
	}
	return err
}
