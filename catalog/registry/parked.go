package registry

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lakeweir/lakeweir/catalog"
)

// ParkedRun is one sealed file of a quarantine: a stretch of the table's changes.
type ParkedRun struct {
	Seq    uint64 // from 1, without holes
	File   string // in the quarantine's folder
	Digest []byte // SHA-256 of the file
	Events int
	Bytes  int64 // of the file
	// From and To are where reading stood before and after it.
	From, To catalog.Place
}

// NoteParked makes a file count: what is up to run.To is parked from here on, and the
// source may forget it. The file must be durable before, and the note is when it
// returns nil. Noting a stretch again that is noted already changes nothing, whatever
// its file is: the first file stays the one that counts. It fails with quarantine.state
// when the run is not the next one, or the quarantine was released.
func (r *Registry) NoteParked(ctx context.Context, id int64, run ParkedRun) error {
	docs, err := texts(run.From, run.To)
	if err != nil {
		return err
	}
	return r.changeQuarantine(ctx, id, func(ctx context.Context, tx pgx.Tx, q *quarantineHead) error {
		switch {
		case q.state == Released, run.Seq == 0, run.Seq > q.runs+1:
			return q.refuse(fmt.Sprintf("take run %d after %d", run.Seq, q.runs))
		case run.Seq <= q.runs:
			var same bool
			err := tx.QueryRow(ctx, `select (events, from_place, to_place) = ($3, $4::text::jsonb, $5::text::jsonb)
				from lakeweir.parked where quarantine_id = $1 and seq = $2`, id, int64(run.Seq), run.Events, docs[0], docs[1]).Scan(&same)
			if err == nil && !same {
				err = q.refuse(fmt.Sprintf("take run %d again with other changes", run.Seq))
			}
			return err
		}
		_, err := tx.Exec(ctx, `insert into lakeweir.parked (quarantine_id, seq, file, digest, events, bytes, from_place, to_place)
			values ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8::text::jsonb)`,
			id, int64(run.Seq), run.File, run.Digest, run.Events, run.Bytes, docs[0], docs[1])
		if err != nil {
			return fmt.Errorf("note run %d of quarantine %d: %w", run.Seq, id, err)
		}
		_, err = tx.Exec(ctx, `update lakeweir.quarantines set runs = $2, events = events + $3, bytes = bytes + $4, through = $5::text::jsonb where id = $1`,
			id, int64(run.Seq), run.Events, run.Bytes, docs[1])
		if err != nil {
			return fmt.Errorf("note run %d of quarantine %d: %w", run.Seq, id, err)
		}
		return nil
	})
}

// ParkedRuns returns the runs of a quarantine after one, in order, at most so many. A
// quarantine that was released has none.
func (r *Registry) ParkedRuns(ctx context.Context, id int64, after uint64, most int) ([]ParkedRun, error) {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := r.pool.Query(within, `select seq, file, digest, events, bytes, from_place::text, to_place::text
		from lakeweir.parked where quarantine_id = $1 and seq > $2 order by seq limit $3`, id, int64(after), most)
	if err != nil {
		return nil, r.fault(ctx, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p ParkedRun, err error) {
		var seq int64
		var from, to string
		if err := row.Scan(&seq, &p.File, &p.Digest, &p.Events, &p.Bytes, &from, &to); err != nil {
			return p, err
		}
		p.Seq, p.Digest = uint64(seq), bytes.Clone(p.Digest)
		if err := unmarshal(docInto{from, &p.From}, docInto{to, &p.To}); err != nil {
			return p, fmt.Errorf("read run %d of quarantine %d: %w", seq, id, err)
		}
		return p, nil
	})
	return out, r.fault(ctx, err)
}
