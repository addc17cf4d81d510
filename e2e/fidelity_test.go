package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/e2e/readers"
	"github.com/lakeweir/lakeweir/e2e/stack"
	"github.com/lakeweir/lakeweir/e2e/stack/stacktest"
	"github.com/lakeweir/lakeweir/e2e/torture"
	"github.com/lakeweir/lakeweir/orchestrator/demo"
)

// One database is captured twice at once, directly and by Debezium through Kafka, into
// two lakes. Whatever is written, each type's odd values, a busy shop and every kind of
// statement, current and history are then the same in both, column by column, but for
// the values that Debezium destroys, which are listed: each of those, and no other.
func TestBothCapturesGiveTheSameLake(t *testing.T) {
	stacktest.Require(t)
	bin := program(t)
	on := stacktest.Start(t, stack.Config{Debezium: true, Lake: true, Postgres: true})
	f := newFidelity(t, bin, on)
	f.write()
	f.requireTheSame()
	t.Run("columns that Debezium leaves out", func(t *testing.T) { requireLeftOut(t, on) })
	t.Run("what stops Debezium", func(t *testing.T) { requireStops(t, on) })
}

// fidelity is one source, captured twice.
type fidelity struct {
	t                *testing.T
	direct, debezium *stand
	plan             torture.Plan
	first, last      map[string]map[string][]*string // by torture table and id: what the source prints
}

func newFidelity(t *testing.T, bin string, on *stack.Stack) *fidelity {
	t.Helper()
	f := &fidelity{t: t}
	source := newDatabase(t, on, "source")
	f.plan = torture.New(serverOf(t, source), limitsOfDebezium())
	capture := func(name, sourceYAML string) *stand {
		s := standOn(t, bin, on)
		s.name, s.dsn, s.records = name, source, newDatabase(t, on, "registry_"+name)
		s.prepare(name, sourceYAML+fmt.Sprintf("namespaces: {bronze: %[1]s_bronze, silver: %[1]s_silver}\n", name), f.files())
		return s
	}
	f.direct = capture("direct", "")
	f.debezium = capture("debezium", throughKafka(on))
	return f
}

// files are those of every table.
func (f *fidelity) files() map[string]string {
	files := shopFiles()
	for _, table := range f.plan.Tables {
		files["public."+table.Name+".yaml"] = "table: public." + table.Name + "\nprimary_key: [id]\nscd: [1, 2]\n"
	}
	for _, table := range written {
		files["public."+table.name+".yaml"] = fmt.Sprintf("table: public.%s\nprimary_key: [%s]\nscd: [1, 2]\nsoft_delete: %t\n", table.name, strings.Join(table.key, ", "), table.soft)
	}
	files["public."+leftOut+".yaml"] = "table: public." + leftOut + "\nprimary_key: [id]\nscd: [1, 2]\n"
	return files
}

// write has rows read by both captures, and then writes.
func (f *fidelity) write() {
	f.t.Helper()
	for _, left := range f.plan.Left {
		f.t.Log("left out: " + left)
	}
	s := f.direct // its connection: both have the same source
	each := func(do func(*torture.Table) []string) {
		for i := range f.plan.Tables {
			s.exec(strings.Join(do(&f.plan.Tables[i]), ";\n"))
		}
	}
	s.exec(torture.Session)
	for _, sql := range f.plan.Setup {
		s.exec(sql)
	}
	each((*torture.Table).Create)
	each(func(t *torture.Table) []string { return statementsOf(0, t.Rows/2, t.Insert) })
	s.exec(strings.Join(writtenBefore(), ";\n"))
	s.exec(createLeftOut())
	require.NoError(f.t, demo.Setup(f.t.Context(), s.dsn, 200))

	f.debezium.broken = leftOut
	both := []*stand{f.direct, f.debezium}
	for _, s := range both {
		s.start()
	}
	tables := len(f.plan.Tables) + len(demo.Tables()) + len(written) + 1
	landed := func() {
		for _, s := range both {
			s.landed(tables)
		}
	}
	landed()

	seed := uint64(time.Now().UnixNano())
	f.t.Logf("seed %d", seed)
	shop := openShop(f.t, s.dsn, 100, seed)
	each(func(t *torture.Table) []string { return statementsOf(t.Rows/2, t.Rows, t.Insert) })
	f.first = f.ask()
	writeAll(f.t, s.dsn)
	landed() // so that the updates below are folds of their own
	each(func(t *torture.Table) []string { return statementsOf(0, t.Rows, t.Update) })
	f.last = f.ask()
	changes := shop.close()
	f.t.Logf("the shop committed %d changes in %d transactions", changes.Changes(), changes.Transactions)
	landed()
	for _, s := range both {
		s.stop()
	}
}

func statementsOf(from, to int, statement func(row int) string) []string {
	var out []string
	for row := from; row < to; row++ {
		out = append(out, statement(row))
	}
	return out
}

// ask returns what the source prints of each row of the torture tables.
func (f *fidelity) ask() map[string]map[string][]*string {
	f.t.Helper()
	out := map[string]map[string][]*string{}
	for i := range f.plan.Tables {
		table := &f.plan.Tables[i]
		result := f.direct.conn.PgConn().ExecParams(f.t.Context(), table.Texts(), nil, nil, nil, nil).Read()
		require.NoError(f.t, result.Err, table.Name)
		rows := map[string][]*string{}
		for _, cells := range result.Rows {
			texts := make([]*string, len(cells)-1)
			for c, cell := range cells[1:] {
				if cell != nil {
					text := string(cell)
					texts[c] = &text
				}
			}
			rows[string(cells[0])] = texts
		}
		out[table.Name] = rows
	}
	return out
}

// requireTheSame has PyIceberg read both lakes and compares them.
func (f *fidelity) requireTheSame() {
	f.t.Helper()
	pyIceberg, err := readers.NewPyIceberg(f.t.Context())
	require.NoError(f.t, err)
	read := func(s *stand) map[string]readers.Table {
		var names []string
		for _, p := range f.pairings() {
			names = append(names, s.name+"_silver."+p.name())
		}
		tables, err := pyIceberg.Read(f.t.Context(), s.lake, names...)
		require.NoError(f.t, err)
		require.Len(f.t, tables, len(names))
		out := map[string]readers.Table{}
		for _, table := range tables {
			out[strings.TrimPrefix(table.Name, s.name+"_silver.")] = table
		}
		return out
	}
	f.compare(read(f.direct), read(f.debezium)).require(f.t)
}

// compare holds the tables of both lakes, by name, against each other.
func (f *fidelity) compare(direct, debezium map[string]readers.Table) *verdict {
	f.t.Helper()
	v := newVerdict()
	for _, p := range f.pairings() {
		a, b := direct[p.name()], debezium[p.name()]
		require.Empty(f.t, a.Refused, p.name())
		require.Empty(f.t, b.Refused, p.name())
		require.NotEmpty(f.t, a.Rows, p.name())
		require.Equal(f.t, a.Types, b.Types, p.name())
		p.compare(v, a.Rows, b.Rows)
	}
	f.t.Logf("%d rows of %d lake tables have %d values that are the same, and %d that Debezium destroyed", v.rows, len(direct), v.same, v.destroyed)
	return v
}

// pairings are current and history of every table.
func (f *fidelity) pairings() []*pairing {
	var out []*pairing
	add := func(table string, key []string, t *torture.Table) {
		for _, layer := range []string{"current", "history"} {
			out = append(out, &pairing{layer: layer, table: table, key: key, torture: t, first: f.first[table], last: f.last[table]})
		}
	}
	for i := range f.plan.Tables {
		add(f.plan.Tables[i].Name, []string{"id"}, &f.plan.Tables[i])
	}
	for _, table := range written {
		add(table.name, table.key, nil)
	}
	for _, table := range demo.Tables() {
		if key, ok := shopKeys[table]; ok {
			add(table, key, nil)
		}
	}
	return out
}

// unavailableColumns names the columns whose value nobody has sent; its order says
// nothing.
const unavailableColumns = "_unavailable_columns"

// apart are columns of the lake's own that the captures do not promise alike, and why.
var apart = map[string]string{
	"_updated_at": "is when the lake was written",
	"_commit_lsn": "is the end of the transaction in direct capture, and of the one before it through Debezium, which does not tell its own",
	"_ordinal":    "is the place in the transaction in direct capture, and the distance from where it began through Debezium",
}

// whenRead are those that a row which nobody has changed since it was read has from its
// reading: each capture reads at a moment of its own.
var whenRead = []string{"valid_from", "_lsn", "_source_ts"}

func isPromised(row map[string]any, column string) bool {
	if _, ok := apart[column]; ok || column == unavailableColumns {
		return false
	}
	return !isRead(row) || !slices.Contains(whenRead, column)
}

// isRead reports a row, or a version, that a snapshot's read has made.
func isRead(row map[string]any) bool { return row["_op"] == "r" || row["_from_snapshot"] == "true" }

func show(v any) string {
	text, _ := json.Marshal(v) // what came from JSON goes there
	if len(text) > 300 {
		return string(text[:300]) + "…"
	}
	return string(text)
}
