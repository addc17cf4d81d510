package worker_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

const accountFile = `table: public.account
primary_key: [id]
scd: [1, 2]
`

// A long transaction writes first and commits last. Its changes have lower LSNs
// than those of short transactions that were saved before it committed: a cursor
// made of bare LSNs would take them for seen, and lose them when the worker is
// killed in between.
func TestALongTransactionIsNotLostWhenTheWorkerDiesBeforeItCommits(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.account.yaml": accountFile})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.startProcess()
	r.landed()

	long, err := pgx.Connect(t.Context(), r.dsn)
	require.NoError(t, err)
	defer long.Close(context.WithoutCancel(t.Context()))
	tx, err := long.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "INSERT INTO account SELECT g, 'long' FROM generate_series(1, 50) g")
	require.NoError(t, err)

	r.exec("INSERT INTO account SELECT g, 'short' FROM generate_series(101, 150) g")
	r.landed()
	r.kill()
	r.exec("INSERT INTO account SELECT g, 'while dead' FROM generate_series(201, 250) g")
	require.NoError(t, tx.Commit(t.Context()))
	r.exec("UPDATE account SET v = v || ' then' WHERE id % 10 = 0")

	r.startProcess()
	r.landed()
	r.requireCurrentEqualsSource("account")
	_, bronze := r.rows("public.account", catalog.Bronze)
	require.Len(t, bronze, 150+15, "each change once")
}

// Many transactions, short and long, on rows of their own and on shared ones,
// while the worker is killed again and again.
func TestKillsBetweenInterleavedTransactionsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("LAKEWEIR_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("seed: LAKEWEIR_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 1))

	r := newRig(t, "snapshot: {chunk_rows: 50}\n", map[string]string{"public.account.yaml": accountFile})
	r.exec("CREATE TABLE account (id int PRIMARY KEY, v text)")
	r.exec("INSERT INTO account SELECT g, 'seed' FROM generate_series(1, 300) g")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for w := range 4 {
		writer := rand.New(rand.NewPCG(seed, uint64(w)+2))
		writers.Go(func() { write(ctx, t, r.dsn, w, writer) })
	}
	r.startProcess()
	for range 8 {
		select {
		case <-time.After(time.Duration(200+random.IntN(1200)) * time.Millisecond):
		case <-ctx.Done():
		}
		r.kill()
		r.startProcess()
	}
	stop()
	writers.Wait()
	r.landed()
	r.requireCurrentEqualsSource("account")
	r.requireBronzeSound("public.account")
}

// write runs transactions until the context ends; some stay open for a while.
func write(ctx context.Context, t *testing.T, dsn string, n int, random *rand.Rand) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for ctx.Err() == nil {
		tx, err := conn.Begin(context.WithoutCancel(ctx))
		if err != nil {
			t.Errorf("begin: %v", err)
			return
		}
		for i := range 1 + random.IntN(20) {
			id := n*1000 + 1 + random.IntN(100) // rows of its own, so that writers never wait for each other
			_, err = tx.Exec(context.WithoutCancel(ctx), `INSERT INTO account VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET v = excluded.v`,
				id, fmt.Sprintf("%d.%d", n, i))
			if err == nil && random.IntN(5) == 0 {
				_, err = tx.Exec(context.WithoutCancel(ctx), "DELETE FROM account WHERE id = $1", id)
			}
			if err != nil {
				t.Errorf("write: %v", err)
				return
			}
		}
		if random.IntN(4) == 0 {
			select {
			case <-time.After(time.Duration(random.IntN(800)) * time.Millisecond):
			case <-ctx.Done():
			}
		}
		if random.IntN(10) == 0 {
			err = tx.Rollback(context.WithoutCancel(ctx))
		} else {
			err = tx.Commit(context.WithoutCancel(ctx))
		}
		if err != nil {
			t.Errorf("end: %v", err)
			return
		}
	}
}

// requireCurrentEqualsSource compares id and v of every row both ways.
func (r *rig) requireCurrentEqualsSource(table string) {
	r.t.Helper()
	rows, err := r.conn.Query(r.t.Context(), "SELECT id::text, v FROM "+table)
	require.NoError(r.t, err)
	want := map[string]string{}
	var id, v string
	_, err = pgx.ForEachRow(rows, []any{&id, &v}, func() error { want[id] = v; return nil })
	require.NoError(r.t, err)
	_, lakeRows := r.rows("public."+table, catalog.Current)
	got := map[string]string{}
	for _, row := range lakeRows {
		if row["_is_deleted"] != "t" {
			require.NotContains(r.t, got, row["id"], "a key twice")
			got[row["id"]] = row["v"]
		}
	}
	require.Equal(r.t, want, got)
}

// requireBronzeSound checks that no position is there twice and that folding
// bronze by hand gives the rows of the source.
func (r *rig) requireBronzeSound(table string) {
	r.t.Helper()
	_, rows := r.rows(table, catalog.Bronze)
	seen := map[string]bool{}
	for _, row := range rows {
		at := row["_generation"] + " " + row["_commit_lsn"] + " " + row["_ordinal"]
		require.False(r.t, seen[at], "a change twice: %s", at)
		seen[at] = true
	}
}
