package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

const docDDL = `create table %[1]s (k1 int, k2 text, title text, body text, n numeric(12,2), at timestamptz default clock_timestamp(), primary key (k1, k2));
alter table %[1]s alter body set storage external, alter k2 set storage external;`

func docDDLOf(table string) string { return fmt.Sprintf(docDDL, table) }

// writers change tables at random until told to stop.
type writers struct {
	stop    atomic.Bool
	wg      sync.WaitGroup
	commits atomic.Int64
}

func (l *lab) write(r *rand.Rand, n int, truncates bool, tables ...string) *writers {
	w := &writers{}
	for range n {
		db := session(l.t, l.dsn)
		rnd := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
		w.wg.Go(func() {
			for !w.stop.Load() && l.t.Context().Err() == nil {
				if transact(l.t.Context(), db, rnd, tables, truncates) {
					w.commits.Add(1)
				}
			}
		})
	}
	l.t.Cleanup(w.end)
	return w
}

func (w *writers) end() {
	w.stop.Store(true)
	w.wg.Wait()
}

// transact runs one random transaction and reports whether it committed.
func transact(ctx context.Context, db *pgx.Conn, r *rand.Rand, tables []string, truncates bool) bool {
	tx, err := db.Begin(ctx)
	if err != nil {
		return false
	}
	n := 1 + r.IntN(4)
	if r.IntN(10) == 0 {
		n = 30
	}
	for range n {
		sql := randomChange(r, tables[r.IntN(len(tables))], truncates)
		if r.IntN(8) == 0 {
			sql = "savepoint s; " + sql + "; rollback to savepoint s"
		}
		if _, err := tx.Conn().PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			_ = tx.Rollback(ctx)
			return false
		}
		if r.IntN(12) == 0 { // others commit meanwhile
			_, _ = tx.Exec(ctx, fmt.Sprintf("select pg_sleep(%f)", r.Float64()/20))
		}
	}
	if r.IntN(8) == 0 {
		_ = tx.Rollback(ctx)
		return false
	}
	return tx.Commit(ctx) == nil
}

func randomChange(r *rand.Rand, table string, truncates bool) string {
	k1, k2 := r.IntN(40), r.IntN(10)
	where := fmt.Sprintf(" where k1 = %d and k2 = 'k%d'", k1, k2)
	big := fmt.Sprintf("repeat('%c', %d)", 'a'+rune(r.IntN(26)), 2500+r.IntN(2000))
	switch i := r.IntN(100); {
	case i < 25:
		return fmt.Sprintf("insert into %s values (%d, 'k%d', 't%d', %s, %d) on conflict do nothing", table, k1, k2, r.IntN(1000), big, r.IntN(1000))
	case i < 55:
		return fmt.Sprintf("update %s set title = 't%d'%s", table, r.IntN(1000), where)
	case i < 62:
		return fmt.Sprintf("update %s set body = %s%s", table, big, where)
	case i < 64:
		return fmt.Sprintf("update %s set body = null%s", table, where)
	case i < 78:
		return fmt.Sprintf("delete from %s%s", table, where)
	case i < 92:
		return fmt.Sprintf("update %s set k1 = %d, k2 = 'k%d'%s", table, r.IntN(40), r.IntN(10), where)
	case i < 96:
		return fmt.Sprintf("update %s set k1 = k1 + 100 where k1 = %d and k2 < 'k3'", table, k1)
	case i < 99:
		return fmt.Sprintf("update %s set k1 = k1 - 100 where k1 = %d", table, 100+k1)
	}
	if truncates && r.IntN(4) == 0 {
		return "truncate " + table
	}
	return fmt.Sprintf("update %s set title = title", table)
}

func fillDocs(table string, rows int) string {
	return fmt.Sprintf("insert into %s select g %% 40, 'k' || g / 40, 'seed' || g, repeat('s', 2500 + g), g from generate_series(0, %d) g", table, rows-1)
}

// TestRowsAndChangesTogetherGiveTheSource reads tables by small chunks while they
// are written to, forgets what was not saved at random moments and starts again.
func TestRowsAndChangesTogetherGiveTheSource(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			ddl := strings.Join([]string{fmt.Sprintf(docDDL, "d1"), fmt.Sprintf(docDDL, "d2"), "alter table d2 replica identity full", fillDocs("d1", 390), fillDocs("d2", 200)}, ";\n")
			l := newLab(t, ddl)
			l.table("d1", "k1", "k2")
			l.table("d2", "k2", "k1")
			l.cfg.Source.Snapshot.ChunkRows = 3 + r.IntN(40)
			l.cfg.Limits.SliceRows = 5 + r.IntN(60)
			if round%2 == 1 {
				l.cfg.Limits.HeldRows = 10 + r.IntN(200)
			}
			l.begin()
			w := l.write(r, 3, round >= 2, "d1", "d2")
			restarts := 0
			l.until("rows are read and enough was written", func() bool {
				for name := range l.store {
					if r.IntN(3) == 0 {
						l.save(name)
					}
				}
				if r.IntN(2) == 0 {
					l.confirm()
				}
				if r.IntN(12) == 0 && restarts < 25 {
					restarts++
					l.crash()
					require.Empty(t, l.begin())
				}
				return w.commits.Load() > 300 && done(l)
			})
			w.end()
			l.drain()
			require.Empty(t, l.faults)
			l.same("d1")
			l.same("d2")
			t.Logf("%d commits, %d restarts, %d and %d events, chunks of %d", w.commits.Load(), restarts, len(l.store["public.d1"].events), len(l.store["public.d2"].events), l.cfg.Source.Snapshot.ChunkRows)
		})
	}
}

func done(l *lab) bool {
	for _, s := range l.store {
		if s.snapshot == nil || !s.snapshot.Done {
			return false
		}
	}
	return true
}

// TestLongAndShortTransactionsSurviveRestarts writes every change also to an audit
// table, and compares, transaction by transaction.
func TestLongAndShortTransactionsSurviveRestarts(t *testing.T) {
	t.Parallel()
	r := seeded(t)
	l := newLab(t, fmt.Sprintf(docDDL, "d")+`
create table audit (n bigserial, xid text, op text, key text, title text);
create function audited() returns trigger language plpgsql as $$ begin
  insert into audit (xid, op, key, title) select pg_current_xact_id()::text, v.op, v.key, v.title from (values
    (1, case when TG_OP = 'INSERT' or TG_OP = 'UPDATE' and (new.k1, new.k2) <> (old.k1, old.k2) then 'c' when TG_OP = 'UPDATE' then 'u' end, new.k1 || '/' || new.k2, new.title),
    (0, case when TG_OP = 'DELETE' or TG_OP = 'UPDATE' and (new.k1, new.k2) <> (old.k1, old.k2) then 'd' end, old.k1 || '/' || old.k2, '')) v(o, op, key, title) where v.op is not null order by v.o; return null; end $$;
create trigger t after insert or update or delete on d for each row execute function audited();`)
	l.table("d", "k1", "k2")
	l.cfg.Limits.SliceRows = 12
	l.begin()
	l.snapshotted()
	w := l.write(r, 4, false, "d")
	restarts := 0
	deadline := time.Now().Add(20 * time.Second)
	l.until("enough was written", func() bool {
		if r.IntN(2) == 0 {
			l.save("public.d")
			l.confirm()
		}
		if r.IntN(10) == 0 {
			restarts++
			l.crash()
			l.begin()
		}
		return w.commits.Load() > 400 || time.Now().After(deadline)
	})
	w.end()
	l.drain()
	l.same("d")
	t.Logf("%d commits, %d restarts", w.commits.Load(), restarts)
	require.Equal(t, l.audited(), l.streamed("public.d"))
}

// audited groups the audit's lines by transaction.
func (l *lab) audited() map[string][]string {
	l.t.Helper()
	rows, err := l.db.Query(l.t.Context(), "select xid, op || ' ' || key || ' ' || coalesce(title, '') from audit order by n")
	require.NoError(l.t, err)
	out := map[string][]string{}
	var xid, line string
	_, err = pgx.ForEachRow(rows, []any{&xid, &line}, func() error {
		out[xid] = append(out[xid], line)
		return nil
	})
	require.NoError(l.t, err)
	return out
}

func (l *lab) streamed(table string) map[string][]string {
	l.t.Helper()
	out := map[string][]string{}
	var last catalog.Position
	for _, e := range l.store[table].events {
		row := e.after
		title := ""
		if row == nil {
			row = e.before
		} else {
			title = row[2]
		}
		xid := strconv.FormatUint(e.xid, 10)
		out[xid] = append(out[xid], fmt.Sprintf("%c %s/%s %s", e.op, row[0], row[1], title))
		require.Positive(l.t, e.position.Compare(last))
		last = e.position
	}
	return out
}
