package worker_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
)

// A case is a txtar file in testdata/cases: a line that says what it is about,
// table files, setup.sql (before capture), changes.sql (one transaction a
// paragraph: T1, T2, …) and want, with sections such as
//
//	current public.doc
//	id=1 title=c body=null
//	history public.doc
//	id=1 title=a body=x*9000 [T1, T2)
//	bronze public.doc
//	c u u u
//	unfit public.doc
//	price=2
//
// Lines of a section may come in any order, save bronze's. Each case runs with a
// batch for each transaction, with all of them in one batch, with every transaction
// split as often as can be, and with no memory for rows that are read back, so that a
// fold of several changes and a TRUNCATE are made in parts; and where it says "identity: both" also with
// REPLICA IDENTITY FULL. A line of a soft-deleted row ends in "deleted".
func TestCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/cases/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, whole := range []bool{false, true} {
			for _, full := range []bool{false, true} {
				if full && !strings.Contains(string(archive.Comment), "identity: both") {
					continue
				}
				for _, version := range []string{"3", "2"} {
					if version == "2" && (whole || full) {
						continue
					}
					t.Run(fmt.Sprintf("%s/whole=%v/full=%v/v%s", name, whole, full, version), func(t *testing.T) {
						t.Parallel()
						runCase(t, archive, mode{whole: whole, full: full, version: version})
					})
				}
			}
		}
		t.Run(name+"/split", func(t *testing.T) {
			t.Parallel()
			runCase(t, archive, mode{split: true, version: "3"})
		})
		t.Run(name+"/parts", func(t *testing.T) {
			t.Parallel()
			runCase(t, archive, mode{parts: true, whole: true, version: "3"})
		})
	}
}

// mode is how a case is run.
type mode struct {
	whole, full, split, parts bool
	version                   string
}

func runCase(t *testing.T, archive *txtar.Archive, m mode) {
	t.Helper()
	parts := map[string]string{}
	tables := map[string]string{}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".yaml") {
			tables[f.Name] = string(f.Data)
		} else {
			parts[f.Name] = string(f.Data)
		}
	}
	r := newRig(t, "format_version: "+m.version+"\n", tables)
	for _, sql := range paragraphs(parts["setup.sql"]) {
		r.exec(sql)
	}
	if m.split {
		r.limits.BatchRows, r.reader.SliceRows = 1, 1
	}
	if m.parts {
		r.lakeCfg.ImageBytes, r.lakeCfg.FindRows, r.lakeCfg.CacheBytes = 1, 1, -1
	}
	if m.full {
		for _, table := range r.tables {
			r.exec("ALTER TABLE " + table.Name.String() + " REPLICA IDENTITY FULL")
		}
	}
	r.start()
	r.landed()
	if m.whole {
		r.stop()
	}
	times := map[string]string{}
	for i, sql := range paragraphs(parts["changes.sql"]) {
		times[r.transaction(sql)] = fmt.Sprintf("T%d", i+1)
		if !m.whole {
			r.landed()
		}
	}
	if m.whole {
		r.start()
		r.landed()
	}
	want := strings.TrimSpace(parts["want"])
	require.Equal(t, want, r.show(want, times))
}

// transaction runs statements in one transaction and returns its commit time.
func (r *rig) transaction(sql string) string {
	r.t.Helper()
	tx, err := r.conn.Begin(r.t.Context())
	require.NoError(r.t, err)
	var xid string
	require.NoError(r.t, tx.QueryRow(r.t.Context(), "select pg_current_xact_id()::xid::text").Scan(&xid))
	_, err = tx.Exec(r.t.Context(), sql)
	require.NoError(r.t, err, sql)
	require.NoError(r.t, tx.Commit(r.t.Context()))
	var at time.Time
	require.NoError(r.t, r.conn.QueryRow(r.t.Context(), "select pg_xact_commit_timestamp($1::text::xid)", xid).Scan(&at))
	return at.UTC().Format(time.RFC3339Nano)
}

func paragraphs(sql string) []string {
	var out []string
	for p := range strings.SplitSeq(sql, "\n\n") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

var section = regexp.MustCompile(`^(current|history|bronze|state|unfit) (\S+)$`)

// show prints the sections that want has, as the lake has them now.
func (r *rig) show(want string, times map[string]string) string {
	var out []string
	for line := range strings.SplitSeq(want, "\n") {
		m := section.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		out = append(out, line)
		switch m[1] {
		case "bronze":
			out = append(out, r.bronzeOps(m[2]))
		case "unfit":
			out = append(out, r.unfitCounts(m[2]))
		case "state":
			v := r.state(m[2])
			code := catalog.Code("")
			if v.Fault != nil {
				code = v.Fault.Code
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s", v.State, code)))
		default:
			lines := r.layerLines(m[2], catalog.Layer(m[1]), times)
			out = append(out, sortedAs(lines, wantedLines(want, line))...)
		}
	}
	return strings.Join(out, "\n")
}

// wantedLines returns the lines of a section.
func wantedLines(want, header string) []string {
	var out []string
	in := false
	for line := range strings.SplitSeq(want, "\n") {
		if section.MatchString(line) {
			in = line == header
			continue
		}
		if in {
			out = append(out, line)
		}
	}
	return out
}

// sortedAs puts lines into the order in which they are wanted, others last.
func sortedAs(lines, want []string) []string {
	rank := func(s string) int {
		if i := slices.Index(want, s); i >= 0 {
			return i
		}
		return len(want)
	}
	slices.SortStableFunc(lines, func(a, b string) int { return rank(a) - rank(b) })
	return lines
}

func (r *rig) layerLines(table string, layer catalog.Layer, times map[string]string) []string {
	columns, rows := r.rows(table, layer)
	var lines []string
	for _, row := range rows {
		var words []string
		for _, c := range columns {
			if strings.HasPrefix(c, "_") || layer == catalog.History && (c == "valid_from" || c == "valid_to" || c == "is_current") {
				continue
			}
			v, ok := row[c]
			if !ok {
				v = "null"
			}
			words = append(words, c+"="+short(v))
		}
		line := strings.Join(words, " ")
		if layer == catalog.History {
			line += fmt.Sprintf(" [%s, %s)", r.when(row["valid_from"], times), r.when(row["valid_to"], times))
			require.Equal(r.t, row["valid_to"] == "9999-12-31 00:00:00+00", row["is_current"] == "t", line)
		}
		if layer == catalog.Current && row["_is_deleted"] == "t" {
			line += " deleted"
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *rig) when(text string, times map[string]string) string {
	if text == "9999-12-31 00:00:00+00" {
		return "open"
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", text)
	require.NoError(r.t, err)
	if name, ok := times[at.UTC().Format(time.RFC3339Nano)]; ok {
		return name
	}
	return "read" // the time of a snapshot
}

// bronzeOps returns the ops of a table's events in order.
func (r *rig) bronzeOps(table string) string {
	_, rows := r.rows(table, catalog.Bronze)
	slices.SortFunc(rows, func(a, b cells) int {
		pos := func(c cells) string {
			return fmt.Sprintf("%020s %020s", c["_commit_lsn"], c["_ordinal"])
		}
		return strings.Compare(pos(a), pos(b))
	})
	var ops []string
	for _, row := range rows {
		op := row["op"]
		if u := row["_unavailable_columns"]; u != "" && u != "{}" {
			op += u
		}
		ops = append(ops, op)
	}
	return strings.Join(ops, " ")
}

// unfits returns how many values of each column the registry has counted as NULL
// for want of a place in the lake.
func (r *rig) unfits(table string) map[string]int {
	r.t.Helper()
	rows, err := r.conn.Query(r.t.Context(), `select coalesce(b.unfits::text, '{}') from lakeweir.batches b
		join lakeweir.tables t on t.id = b.table_id where t.name = $1`, table)
	require.NoError(r.t, err)
	docs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(r.t, err)
	out := map[string]int{}
	for _, doc := range docs {
		var counts map[string]int
		require.NoError(r.t, json.Unmarshal([]byte(doc), &counts))
		for column, n := range counts {
			out[column] += n
		}
	}
	return out
}

// unfitCounts prints them once the worker has stopped, which has told all by then.
func (r *rig) unfitCounts(table string) string {
	if r.cancel != nil {
		r.stop()
	}
	counts := r.unfits(table)
	var words []string
	for _, column := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s=%d", column, counts[column]))
	}
	return strings.Join(words, " ")
}

func testLogger(t interface {
	Output() io.Writer
},
) *slog.Logger {
	level := slog.LevelWarn
	if os.Getenv("LAKEWEIR_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
}
