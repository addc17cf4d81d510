package worker_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/localpg/localpgtest"
	"github.com/lakeweir/lakeweir/worker/reconcile"
)

// A label that is added is taken without a stop, and an enum type without labels
// stops nothing. A label that is renamed changes what the source shows for old rows
// without changing them: the lake keeps what was sent, and reconciliation tells the
// row and the column.
func TestC08EnumLabelsThatAreAddedAndRenamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.p.yaml": "table: public.p\nprimary_key: [id]\nscd: [1, 2]\n"})
	r.exec("CREATE TYPE mood AS ENUM ('sad', 'ok')")
	r.exec("CREATE TYPE unused AS ENUM ()")
	r.exec("CREATE TABLE p (id int PRIMARY KEY, m mood, ms mood[])")
	r.exec("INSERT INTO p VALUES (1, 'ok', '{sad,ok}')")
	r.start()
	r.landed()
	r.exec("ALTER TYPE mood ADD VALUE 'happy' BEFORE 'ok'")
	r.exec("INSERT INTO p VALUES (2, 'happy', '{happy,NULL}')")
	r.exec("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
	r.exec("INSERT INTO p VALUES (3, 'blue', '{blue}')")
	r.landed()
	want := "current public.p\nid=1 m=ok ms={sad,ok}\nid=2 m=happy ms={happy,NULL}\nid=3 m=blue ms={blue}\nstate public.p\nstreaming"
	require.Equal(t, want, r.show(want, nil))

	result := r.compare(reconcile.Config{})["public.p"]
	source, lake := "{blue,ok}", "{sad,ok}"
	require.Equal(t, int64(1), result.Differing, result.Text())
	require.Equal(t, []reconcile.Difference{{
		Kind: reconcile.Changed, Key: "id=1",
		Values: []reconcile.ValuePairs{{Column: "ms", Source: &source, Lake: &lake}},
	}}, result.Differences, result.Text())

	// Written again, the row shows the new label, and source and lake are equal.
	r.exec("UPDATE p SET ms = ms WHERE id = 1")
	r.landed()
	result = r.compare(reconcile.Config{})["public.p"]
	require.True(t, result.Equal(), result.Text())
}

// A worker in Chicago, on a source whose sessions are in Chicago, stores the same
// wall-clock times and the same instants as one in UTC, in the hours that do not
// exist there and in those that exist twice.
func TestC10SummerTimeWithTheWorkerInAnyZone(t *testing.T) {
	t.Parallel()
	shown := map[string]string{}
	for zone, abbreviation := range map[string]string{"UTC": "UTC", "America/Chicago": "CDT"} {
		r := newRig(t, "", map[string]string{"public.g.yaml": "table: public.g\nprimary_key: [id]\nscd: [1, 2]\n"})
		r.env = []string{"TZ=" + zone, zoneEnv + "=" + abbreviation}
		var database string
		require.NoError(t, r.conn.QueryRow(t.Context(), "select current_database()").Scan(&database))
		r.exec("ALTER DATABASE " + database + " SET timezone = '" + zone + "'")
		r.exec("CREATE TABLE g (id int PRIMARY KEY, at timestamp NOT NULL, tz timestamptz, v text)")
		r.exec(`INSERT INTO g VALUES (1, '2026-03-08 01:59:59', '2026-03-08 07:59:59+00', 'x'), (2, '2026-03-08 02:00:00', '2026-03-08 08:00:00+00', 'x')`)
		r.startProcess()
		r.landed()
		early := r.transaction(`INSERT INTO g VALUES (3, '2026-03-08 02:30:00', '2026-03-08 08:30:00+00', 'x'), (4, '2026-03-08 03:00:00', '2026-03-08 08:00:00+00', 'x')`)
		times := map[string]string{
			early: "T0",
			r.transaction(`INSERT INTO g VALUES (5, '2026-11-01 01:30:00', '2026-11-01 06:30:00+00', 'a')`): "T1",
			r.transaction(`UPDATE g SET v = 'b', tz = '2026-11-01 07:30:00+00' WHERE id = 5`):               "T2",
		}
		r.landed()
		want := `current public.g
id=1 at=2026-03-08 01:59:59 tz=2026-03-08 07:59:59+00 v=x
id=2 at=2026-03-08 02:00:00 tz=2026-03-08 08:00:00+00 v=x
id=3 at=2026-03-08 02:30:00 tz=2026-03-08 08:30:00+00 v=x
id=4 at=2026-03-08 03:00:00 tz=2026-03-08 08:00:00+00 v=x
id=5 at=2026-11-01 01:30:00 tz=2026-11-01 07:30:00+00 v=b
history public.g
id=1 at=2026-03-08 01:59:59 tz=2026-03-08 07:59:59+00 v=x [read, open)
id=2 at=2026-03-08 02:00:00 tz=2026-03-08 08:00:00+00 v=x [read, open)
id=3 at=2026-03-08 02:30:00 tz=2026-03-08 08:30:00+00 v=x [T0, open)
id=4 at=2026-03-08 03:00:00 tz=2026-03-08 08:00:00+00 v=x [T0, open)
id=5 at=2026-11-01 01:30:00 tz=2026-11-01 06:30:00+00 v=a [T1, T2)
id=5 at=2026-11-01 01:30:00 tz=2026-11-01 07:30:00+00 v=b [T2, open)
state public.g
streaming`
		shown[zone] = r.show(want, times)
		require.Equal(t, want, shown[zone], zone)
		result := r.compare(reconcile.Config{})["public.g"]
		require.True(t, result.Equal(), result.Text())
		r.kill()
	}
	require.Equal(t, shown["UTC"], shown["America/Chicago"])
}

// A database in SQL_ASCII holds whatever bytes somebody wrote. Text that is not
// UTF-8 has no place in the lake: NULL, counted; it stops nothing, neither the
// snapshot nor the stream.
func TestTextThatIsNotUTF8IsNullAndCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "", map[string]string{"public.raw.yaml": "table: public.raw\nprimary_key: [id]\nscd: [1, 2]\n"})
	notes := r.conn // the registry stays where it is
	r.dsn = asciiDatabase(t)
	var err error
	r.conn, err = pgx.Connect(t.Context(), r.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.conn.Close(context.WithoutCancel(t.Context())) })
	r.exec("CREATE TABLE raw (id int PRIMARY KEY, v text, a text[], j json)")
	r.exec(`INSERT INTO raw VALUES (1, E'caf\xe9', E'{caf\xe9}', '{}'), (2, 'café', '{café}', '"é"')`)
	r.start()
	r.landed()
	r.exec(`INSERT INTO raw VALUES (3, E'caf\xe9', E'{caf\xe9}', '{}'), (4, 'café', '{café}', '"é"')`)
	r.exec(`UPDATE raw SET v = E'\xff' WHERE id = 4`)
	r.landed()
	want := "current public.raw\nid=1 v=null a=null j={}\nid=2 v=café a={café} j=\"é\"\nid=3 v=null a=null j={}\nid=4 v=null a={café} j=\"é\"\nstate public.raw\nstreaming"
	require.Equal(t, want, r.show(want, nil))
	result := r.compare(reconcile.Config{})["public.raw"]
	require.True(t, result.Equal(), result.Text())
	require.Equal(t, map[string]int64{"v": 3, "a": 2}, result.Unfit)
	r.stop()
	r.conn = notes
	require.Equal(t, map[string]int{"v": 3, "a": 2}, r.unfits("public.raw"))
}

// asciiDatabase makes a database without an encoding.
func asciiDatabase(t *testing.T) string {
	t.Helper()
	dsn := localpgtest.Database(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	name := config.Database
	config.Database = "postgres"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{"DROP DATABASE " + name, "CREATE DATABASE " + name + " ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"} {
		_, err = conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return dsn
}
