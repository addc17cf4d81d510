package debezium

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
)

var update = flag.Bool("update", false, "rewrite golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run: go test ./worker/debezium -update")
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; run: go test ./worker/debezium -update\n%s", path, diff)
	}
}

// recorded is a record as the samples have it.
type recorded struct {
	Record
	label string // after.label, of the tables of types
	phase string // snapshot or stream
}

// samples reads a file of recorded topics.
func samples(t testing.TB, name string) []recorded {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	var out []recorded
	for line := range bytes.Lines(raw) {
		var r struct {
			Topic     string
			Partition int32
			Offset    int64
			Headers   map[string]string
			Key       json.RawMessage
			Value     json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &r))
		rec := recorded{Record: Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: bytesOf(t, r.Key), Value: bytesOf(t, r.Value)}}
		for k, v := range r.Headers {
			rec.Headers = append(rec.Headers, Header{Key: k, Value: []byte(v)})
		}
		type payload struct {
			Op    string
			After struct{ Label string }
		}
		var v struct {
			payload
			Payload payload
		}
		if rec.Value != nil && rec.Value[0] == '{' {
			require.NoError(t, json.Unmarshal(rec.Value, &v))
			rec.label, rec.phase = v.After.Label+v.Payload.After.Label, "stream"
			if v.Op+v.Payload.Op == "r" {
				rec.phase = "snapshot"
			}
		}
		out = append(out, rec)
	}
	return out
}

func bytesOf(t testing.TB, raw json.RawMessage) []byte {
	t.Helper()
	if string(raw) == "null" {
		return nil
	}
	var b struct {
		Base64 *string `json:"$base64"`
	}
	if bytes.HasPrefix(raw, []byte(`{"$base64"`)) {
		require.NoError(t, json.Unmarshal(raw, &b))
		out, err := base64.StdEncoding.DecodeString(*b.Base64)
		require.NoError(t, err)
		return out
	}
	return bytes.Clone(raw)
}

// recordedTable is a table of the samples: its columns, and what the direct path makes
// of its rows, as the server prints it.
type recordedTable struct {
	Columns []struct {
		Name   string
		Source catalog.SourceType
	}
	Rows map[string]map[string]string // by label and column; what is not there is NULL
}

const textUnfit = "<unfit>"

func recordedTables(t testing.TB) map[string]recordedTable {
	t.Helper()
	raw, err := os.ReadFile("testdata/tables.json")
	require.NoError(t, err)
	out := map[string]recordedTable{}
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// schema has the columns that keep says; nil: all.
func (r recordedTable) schema(keep func(name string) bool) *catalog.Schema {
	s := &catalog.Schema{Version: 1, Key: []int{0}}
	for _, c := range r.Columns {
		if keep == nil || keep(c.Name) {
			s.Columns = append(s.Columns, catalog.Column{Name: c.Name, Source: c.Source, Type: typemap.Postgres(c.Source), Nullable: true})
		}
	}
	return s
}

// columns makes a schema of "name type" pairs, where a type is a base name, with [] for
// an array. The first column is the key.
func columns(pairs ...string) *catalog.Schema {
	s := &catalog.Schema{Version: 1, Key: []int{0}}
	for _, p := range pairs {
		name, base, _ := strings.Cut(p, " ")
		source := sourceNamed(base)
		s.Columns = append(s.Columns, catalog.Column{Name: name, Source: source, Type: typemap.Postgres(source), Nullable: true})
	}
	return s
}

// sourceNamed reads "numeric(10,2)", "timestamp(3)", "bit(8)", "int4[]" or a base name.
func sourceNamed(text string) catalog.SourceType {
	if elem, ok := strings.CutSuffix(text, "[]"); ok {
		e := sourceNamed(elem)
		if inner := e; inner.Base == "array" {
			inner.Dims = 2
			return inner
		}
		return catalog.SourceType{Name: text, Base: "array", Modifier: e.Modifier, Elem: &e, Dims: 1}
	}
	text, isDomain := strings.CutPrefix(text, "domain:")
	base, rest, _ := strings.Cut(text, "(")
	s := catalog.SourceType{Name: text, Base: base, Modifier: -1}
	var p, scale int32
	switch n, _ := fmt.Sscanf(rest, "%d,%d", &p, &scale); {
	case n == 2 || n == 1 && base == "numeric":
		s.Modifier = (p<<16 | scale&0x7ff) + 4
	case n == 1:
		s.Modifier = p
	}
	if strings.HasSuffix(base, "range") {
		s.Base = "range"
	}
	if isDomain {
		s.Name = "public.domain_over_" + base
	}
	return s
}

func newDecoder(t testing.TB, cfg Config) *Decoder {
	t.Helper()
	if cfg.Table == nil {
		cfg.Table = &catalog.Table{Source: "shop", Name: catalog.ParseTableName("app.t")}
	}
	d, err := New(cfg)
	require.NoError(t, err)
	return d
}

// texts returns a row's cells as the server prints them.
func texts(rows *change.Rows, row int) map[string]string {
	out := map[string]string{}
	for col, c := range rows.Schema().Columns {
		switch rows.Mark(row, col) {
		case change.Absent:
			out[c.Name] = "<absent>"
		case change.Null:
			out[c.Name] = "<null>"
		case change.Unavailable:
			out[c.Name] = "<unavailable>"
		case change.Unfit:
			out[c.Name] = textUnfit
		case change.Present, change.Filled:
			var b []byte
			if !c.Type.Fixed() {
				b = rows.Bytes(row, col)
			}
			out[c.Name] = string(typemap.AppendText(nil, c.Type, fixedOf(rows, row, col), b))
		}
	}
	return out
}

// show prints what a record says.
func show(ev Event, err error, rows *change.Rows) string {
	if err != nil {
		return "error " + showError(err)
	}
	var b strings.Builder
	b.WriteString(ev.Kind.String())
	if !ev.Kind.IsChange() {
		return b.String()
	}
	fmt.Fprintf(&b, " %c %s lsn=%s seq=%s tx=%d at=%d", ev.Op, ev.Snapshot, ev.LSN, ev.Sequence, ev.TxID, ev.CommitTime)
	if ev.MovedTo {
		b.WriteString(" moved-to")
	}
	if ev.MovedFrom {
		b.WriteString(" moved-from")
	}
	for _, part := range []struct {
		name string
		row  int
	}{{"before", ev.Before}, {"after", ev.After}, {"other", ev.Other}} {
		if part.row >= 0 {
			fmt.Fprintf(&b, "\n    %s %s", part.name, showRow(rows, part.row))
		}
	}
	return b.String()
}

func showRow(rows *change.Rows, row int) string {
	cells := texts(rows, row)
	var parts []string
	for _, c := range rows.Schema().Columns {
		v := cells[c.Name]
		if len(v) > 80 {
			v = fmt.Sprintf("%s…(%d)", v[:40], len(v))
		}
		if v != "<absent>" {
			parts = append(parts, c.Name+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

func showError(err error) string {
	e := catalog.Public(err)
	return fmt.Sprintf("%s %s: %s\n    hint: %s", e.Kind, e.Code, e.Message, e.Hint)
}

// decodeAll decodes records and prints them.
func decodeAll(t *testing.T, d *Decoder, records []recorded) string {
	t.Helper()
	var b strings.Builder
	for i := range records {
		rows := change.NewRows(d.cfg.Schema)
		ev, err := d.Decode(t.Context(), &records[i].Record, rows)
		fmt.Fprintf(&b, "%s@%d %s\n", records[i].Topic, records[i].Offset, show(ev, err, rows))
	}
	return b.String()
}

func ofTopic(records []recorded, topic string) []recorded {
	return slices.DeleteFunc(slices.Clone(records), func(r recorded) bool { return r.Topic != topic })
}

// schemas is a registry in memory.
type schemas map[uint32]string

func (s schemas) Schema(_ context.Context, id uint32) (string, error) {
	if text, ok := s[id]; ok {
		return text, nil
	}
	return "", fmt.Errorf("there is no schema %d", id)
}

func recordedSchemas(t testing.TB) schemas {
	t.Helper()
	raw, err := os.ReadFile("testdata/avro_schemas.json")
	require.NoError(t, err)
	var byText map[string]string
	require.NoError(t, json.Unmarshal(raw, &byText))
	out := schemas{}
	for id, text := range byText {
		var n uint32
		_, err := fmt.Sscan(id, &n)
		require.NoError(t, err)
		out[n] = text
	}
	return out
}

// placed is a line of the files of orders.
type placed struct {
	Event
	offset int64
	key    string
}

func orderSamples(t testing.TB, name string) []placed {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	var out []placed
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		var p placed
		var op, snapshot, sequence, last, lsn, tx string
		_, err := fmt.Sscan(s.Text(), &p.offset, &op, &snapshot, &sequence, &last, &lsn, &tx, &p.key)
		require.NoError(t, err, s.Text())
		number := func(text string) (n catalog.LSN) {
			if text != "-" {
				_, err := fmt.Sscan(text, &n)
				require.NoError(t, err)
			}
			return n
		}
		p.Kind, p.Op, p.HasSequence = Row, change.Op(op[0]), true
		p.Sequence, p.LSN, p.TxID = number(sequence), number(lsn), uint64(number(tx))
		if snapshot == "incremental" {
			p.Snapshot, p.LSN = Incremental, number(last)
		}
		out = append(out, p)
	}
	return out
}

func fixedOf(rows *change.Rows, row, col int) int64 {
	if !rows.Schema().Columns[col].Type.Fixed() {
		return 0
	}
	return rows.Fixed(row, col)
}

func sprint(v any) string { return fmt.Sprint(v) }

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// nameUUID is Java's UUID.nameUUIDFromBytes.
func nameUUID(text string) string {
	id := uuid.NewMD5(uuid.UUID{}, nil)
	sum := md5.Sum([]byte(text))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x30, id[8]&0x3f|0x80
	return id.String()
}

// printable shows bytes that are no text.
func printable(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' {
			fmt.Fprintf(&b, `\x%02x`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
