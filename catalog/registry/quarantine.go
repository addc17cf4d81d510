package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// QuarantineState is how far a quarantine has come.
type QuarantineState string

// The states.
const (
	Parking   QuarantineState = "parking"   // what comes for the table is parked
	Replaying QuarantineState = "replaying" // what was parked is being handed back; what comes is parked behind it
	Released  QuarantineState = "released"  // everything was handed back, and the key is destroyed
)

// Quarantine is one stay of a table that could not go on.
type Quarantine struct {
	ID     int64  // set by BeginQuarantine
	Source string // set by reads
	Table  string // catalog.TableName.String()
	Since  time.Time
	Cause
	At    catalog.Place // of the first change that was not handed over
	State QuarantineState
	// Key opens what is parked. It is sealed where the source has a token key, and empty
	// once it was destroyed; KeyID says which one it is or was.
	Key   catalog.Secret
	KeyID string
	// Folder is where the files are: a URI.
	Folder string
	Parked Parked
	// Replays is how often handing back was begun; Replayed are the runs that bronze
	// holds of the last time.
	Replays  int
	Replayed uint64
	Asked    *ReleaseRequest // nil until somebody asks
	// ReleasedAt is zero until it ends; Abandoned says that it ended without its runs
	// being handed back. SweptAt is zero until its files are gone.
	ReleasedAt, SweptAt time.Time
	Abandoned           bool
}

// Cause is why a table cannot go on.
type Cause struct {
	Fault    Fault
	Evidence Evidence
	Change   int64 // the schema change that it waits for; 0 for none
}

// Parked sums up what is parked.
type Parked struct {
	Runs    uint64 // numbered from 1
	Events  int64
	Bytes   int64         // of the files
	Through catalog.Place // everything up to here is in a file; zero when nothing is yet
}

// ReleaseRequest says who wants a table to go on.
type ReleaseRequest struct {
	At         time.Time
	By, Reason string
}

// BeginQuarantine keeps a quarantine, as parking, and returns it as it is kept. When
// the table has one that is not released, that one is returned, unchanged: use its key
// and folder. It is durable when it returns, and fails with table.not_found when the
// registry does not know the table.
func (r *Registry) BeginQuarantine(ctx context.Context, source string, q Quarantine) (*Quarantine, error) {
	docs, err := texts(q.Evidence, q.At)
	if err != nil {
		return nil, err
	}
	err = r.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		table, err := lockTable(ctx, tx, source, q.Table)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `select id from lakeweir.quarantines where table_id = $1 and state <> 'released'`, table).Scan(&q.ID)
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		err = tx.QueryRow(ctx, `insert into lakeweir.quarantines (table_id, change_id, code, reason, hint, evidence, at, key, key_id, folder)
			values ($1, nullif($2, 0), $3, $4, $5, $6::text::jsonb, $7::text::jsonb, $8, $9, $10) returning id`,
			table, q.Change, string(q.Fault.Code), storable(q.Fault.Message), storable(q.Fault.Hint), docs[0], docs[1],
			q.Key.Reveal(), q.KeyID, q.Folder).Scan(&q.ID)
		if err != nil {
			return fmt.Errorf("begin a quarantine of %s/%s: %w", source, q.Table, err)
		}
		return tellQuarantine(ctx, tx, table, q.ID, "", Parking, q.Cause.detail())
	})
	if err != nil {
		return nil, err
	}
	return r.Quarantine(ctx, q.ID)
}

// AskRelease has a table go on: its worker hands back what is parked. Asking again
// replaces who asked and why. It fails with quarantine.state once it was released.
func (r *Registry) AskRelease(ctx context.Context, id int64, by, reason string) error {
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		if q.state == Released {
			return q.refuse("be released again")
		}
		_, err := tx.Exec(ctx, `update lakeweir.quarantines set asked_at = clock_timestamp(), asked_by = $2, asked_for = $3 where id = $1`,
			id, storable(by), storable(reason))
		if err != nil {
			return fmt.Errorf("ask for the release of quarantine %d: %w", id, err)
		}
		return tellQuarantine(ctx, tx, q.table, id, q.state, q.state, map[string]any{"by": storable(by), "message": storable(reason)})
	})
}

// StartReplay says that what is parked is handed back from the first run on, also when
// it was already. It fails with quarantine.state once the quarantine was released.
func (r *Registry) StartReplay(ctx context.Context, id int64) error {
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		if q.state == Released {
			return q.refuse("be handed back")
		}
		_, err := tx.Exec(ctx, `update lakeweir.quarantines set state = 'replaying', replays = replays + 1, replayed = 0 where id = $1`, id)
		if err != nil || q.state == Replaying {
			return err
		}
		return tellQuarantine(ctx, tx, q.table, id, q.state, Replaying, map[string]any{"runs": q.runs})
	})
}

// NoteReplayed says that bronze holds everything of the runs up to one. It fails with
// quarantine.state when they are not being handed back, or there is no such run.
func (r *Registry) NoteReplayed(ctx context.Context, id int64, through uint64) error {
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		if q.state != Replaying || through > q.runs {
			return q.refuse(fmt.Sprintf("have run %d handed back", through))
		}
		_, err := tx.Exec(ctx, `update lakeweir.quarantines set replayed = greatest(replayed, $2) where id = $1`, id, int64(through))
		return err
	})
}

// StopReplay says that the table cannot go on after all, for the cause: nothing counts
// as handed back, and whoever asked for a release is answered. It may be repeated.
func (r *Registry) StopReplay(ctx context.Context, id int64, cause Cause) error {
	docs, err := texts(cause.Evidence)
	if err != nil {
		return err
	}
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		if q.state == Released {
			return q.refuse("be parked again")
		}
		_, err := tx.Exec(ctx, `update lakeweir.quarantines set state = 'parking', replayed = 0, change_id = nullif($2, 0), code = $3, reason = $4, hint = $5,
			evidence = $6::text::jsonb, asked_at = null, asked_by = '', asked_for = '' where id = $1`,
			id, cause.Change, string(cause.Fault.Code), storable(cause.Fault.Message), storable(cause.Fault.Hint), docs[0])
		if err != nil {
			return fmt.Errorf("park what quarantine %d has again: %w", id, err)
		}
		return tellQuarantine(ctx, tx, q.table, id, q.state, Parking, cause.detail())
	})
}

// EndQuarantine says that the table goes on: bronze holds everything that was parked.
// The key is destroyed, so that nobody opens the files any more, and the index of the
// runs with it. It fails with quarantine.state when NoteReplayed was not told of every
// run, and may be repeated.
func (r *Registry) EndQuarantine(ctx context.Context, id int64) error {
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		switch {
		case q.state == Released && !q.abandoned:
			return nil
		case q.state == Released || q.replayed != q.runs:
			return q.refuse(fmt.Sprintf("end with %d of %d runs handed back", q.replayed, q.runs))
		}
		return q.end(ctx, tx, false, map[string]any{"runs": q.runs})
	})
}

// AbandonQuarantine ends a quarantine without what is parked being handed back: the
// table is read anew instead. The key is destroyed as by EndQuarantine. It may be
// repeated.
func (r *Registry) AbandonQuarantine(ctx context.Context, id int64, by, reason string) error {
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		switch {
		case q.state == Released && q.abandoned:
			return nil
		case q.state == Released:
			return q.refuse("be abandoned")
		}
		return q.end(ctx, tx, true, map[string]any{"runs": q.runs, "abandoned": true, "by": storable(by), "message": storable(reason)})
	})
}

// MarkSwept says that the files of a quarantine that ended are gone.
func (r *Registry) MarkSwept(ctx context.Context, id int64) error {
	return r.exec(ctx, `update lakeweir.quarantines set swept_at = now() where id = $1 and state = 'released' and swept_at is null`, id)
}

// quarantineHead is what a step depends on.
type quarantineHead struct {
	id, table      int64
	name           string
	state          QuarantineState
	runs, replayed uint64
	abandoned      bool
}

func (q *quarantineHead) refuse(what string) error {
	return catalog.Errorf(catalog.Conflict, catalog.CodeQuarantineState, "look at it again: lakeweir quarantine show",
		"quarantine %d of %s is %s and cannot %s", q.id, q.name, q.state, what)
}

func (q *quarantineHead) end(ctx context.Context, tx pgx.Tx, abandoned bool, detail map[string]any) error {
	if _, err := tx.Exec(ctx, `update lakeweir.quarantines set state = 'released', key = null, released_at = now(), abandoned = $2 where id = $1`, q.id, abandoned); err != nil {
		return fmt.Errorf("end quarantine %d: %w", q.id, err)
	}
	if _, err := tx.Exec(ctx, `delete from lakeweir.parked where quarantine_id = $1`, q.id); err != nil {
		return fmt.Errorf("end quarantine %d: %w", q.id, err)
	}
	return tellQuarantine(ctx, tx, q.table, q.id, q.state, Released, detail)
}

// changeQuarantine runs do with a quarantine locked, in one durable transaction.
func (r *Registry) changeQuarantine(ctx context.Context, id int64, do func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error) error {
	return r.durably(ctx, func(ctx context.Context, tx pgx.Tx) error {
		q := quarantineHead{id: id}
		var runs, replayed int64
		err := tx.QueryRow(ctx, `select q.table_id, t.source || '/' || t.name, q.state, q.runs, q.replayed, q.abandoned from lakeweir.quarantines q
			join lakeweir.tables t on t.id = q.table_id where q.id = $1 for update of q`, id).
			Scan(&q.table, &q.name, &q.state, &runs, &replayed, &q.abandoned)
		if errors.Is(err, pgx.ErrNoRows) {
			return noQuarantine(id)
		}
		if err != nil {
			return fmt.Errorf("find quarantine %d: %w", id, err)
		}
		q.runs, q.replayed = uint64(runs), uint64(replayed)
		return do(ctx, tx, &q)
	})
}

func (c *Cause) detail() map[string]any {
	d := map[string]any{"code": c.Fault.Code, "message": storable(c.Fault.Message), "hint": storable(c.Fault.Hint)}
	if c.Change != 0 {
		d["change"] = c.Change
	}
	return d
}

func tellQuarantine(ctx context.Context, tx pgx.Tx, table, id int64, from, to QuarantineState, detail map[string]any) error {
	detail["id"], detail["to"] = id, to
	if from != "" {
		detail["from"] = from
	}
	return addEvent(ctx, tx, table, QuarantineChanged, detail)
}

func noQuarantine(id int64) error {
	return catalog.Errorf(catalog.NotFound, catalog.CodeNoQuarantine, "lakeweir quarantine list shows those it knows",
		"the registry knows no quarantine %d", id)
}
