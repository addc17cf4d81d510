package lake

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// evolving is a plain model of a table that changes its rows and its columns. It knows
// columns by identities of its own, and values as what they say: an int and the long
// that it becomes are one.
type evolving struct {
	r       *rand.Rand
	columns []evolvingColumn
	rows    map[int64]values
	history map[int64][]interval
	version int
	count   int // columns so far
	pos     catalog.Position
	time    int64
	events  []event // since the last batch
	past    []event // before
	filled  []filledColumn
}

// filledColumn is a column that was added with a constant.
type filledColumn struct {
	id    int
	value any
	at    catalog.Position
	time  int64
}

type evolvingColumn struct {
	catalog.Column
	id int
}

// values are a row's, by the column's identity; nil is NULL.
type values map[int]any

type interval struct {
	from, to int64
	row      values
}

type event struct {
	op         change.Op
	key, other int64
	moved      bool // to or from other
	row        values
	unsent     map[int]bool
	at         catalog.Position
	time       int64
	before     values // whole before image; nil: the key alone
}

func newEvolving(seed int) *evolving {
	m := &evolving{r: rand.New(rand.NewPCG(uint64(seed), 7)), rows: map[int64]values{}, history: map[int64][]interval{}, version: 1, pos: catalog.Position{Generation: 1, Commit: 0x1000}, time: 1_700_000_000_000_000}
	for _, t := range []catalog.Type{typ(catalog.Int32), typ(catalog.Int32), typ(catalog.Float32), {Kind: catalog.Decimal, Precision: 9, Scale: 2}, typ(catalog.Text), listOf(catalog.Int32)} {
		m.add(t)
	}
	return m
}

func listOf(k catalog.ValueKind) catalog.Type {
	elem := typ(k)
	return catalog.Type{Kind: catalog.List, Elem: &elem}
}

func (m *evolving) add(t catalog.Type) *evolvingColumn {
	m.count++
	m.columns = append(m.columns, evolvingColumn{catalog.Column{Name: fmt.Sprintf("c.%d", m.count), Number: m.count, Type: t, Nullable: true}, m.count})
	return &m.columns[len(m.columns)-1]
}

func (m *evolving) schema() *catalog.Schema {
	s := &catalog.Schema{Version: m.version, Key: []int{0}}
	for _, c := range m.columns {
		s.Columns = append(s.Columns, c.Column)
	}
	return s
}

func (m *evolving) table() *catalog.Table {
	return &catalog.Table{Source: "shop", Name: catalog.TableName{Schema: "public", Name: "evolving"}, PrimaryKey: []string{"c.1"}, Current: true, History: true, ApplyTruncates: true}
}

// evolve makes one or two random changes of the columns, in a transaction, and says
// which.
func (m *evolving) evolve() string {
	var did []string
	m.version++
	m.pos.Commit += 0x10
	m.pos.Ordinal = 4
	m.time += 1_000_000
	m.filled = nil
	for range 1 + m.r.IntN(2) {
		did = append(did, m.evolveOnce())
	}
	for _, f := range m.filled {
		for _, c := range m.columns {
			if c.id == f.id && !c.Dropped {
				m.fill(f.id, f.value)
			}
		}
	}
	return strings.Join(did, ", ")
}

func (m *evolving) evolveOnce() string {
	i := 1 + m.r.IntN(len(m.columns)-1)
	c := &m.columns[i]
	switch m.r.IntN(7) {
	case 0, 1:
		types := []catalog.Type{typ(catalog.Int32), typ(catalog.Float32), {Kind: catalog.Decimal, Precision: 9, Scale: 2}, typ(catalog.Text), typ(catalog.Int64), listOf(catalog.Int32)}
		c := m.add(types[m.r.IntN(len(types))])
		v := m.value(c.Type)
		if v == nil || m.r.IntN(2) == 0 {
			return "add " + c.Name
		}
		m.filled = append(m.filled, filledColumn{c.id, v, m.pos, m.time})
		return fmt.Sprintf("add %s with %v", c.Name, v)
	case 2:
		if m.r.IntN(4) == 0 {
			c = &m.columns[0] // the key
		}
		c.Type = wider(c.Type)
		return "widen " + c.Name + " to " + c.Type.String()
	case 3:
		if m.r.IntN(4) == 0 {
			c = &m.columns[0]
		}
		was := c.Name
		m.count++
		c.Column = c.Renamed(fmt.Sprintf("r %d", m.count))
		return "rename " + was + " to " + c.Name
	case 4:
		c.Dropped = true
		return "drop " + c.Name
	case 5:
		o := &m.columns[1+m.r.IntN(len(m.columns)-1)]
		if o.id == c.id {
			return "nothing"
		}
		a, b := c.Name, o.Name
		c.Column, o.Column = c.Renamed(b), o.Renamed(a)
		return "swap " + a + " and " + b
	default:
		name, t := c.Name, c.Type
		m.count++
		c.Column = c.Renamed(fmt.Sprintf("old %d", m.count))
		c.Dropped = true
		n := m.add(t)
		n.Name = name
		return "replace " + name
	}
}

func wider(t catalog.Type) catalog.Type {
	switch t.Kind { //nolint:exhaustive // the model has no others
	case catalog.Int32:
		return typ(catalog.Int64)
	case catalog.Float32:
		return typ(catalog.Float64)
	case catalog.Decimal:
		if t.Precision == 9 {
			t.Precision = 18
		} else {
			t.Precision = 38
		}
	case catalog.List:
		return listOf(catalog.Int64)
	}
	return t
}

// live runs a transaction over distinct keys.
func (m *evolving) live() {
	m.pos.Commit += 0x10
	m.pos.Ordinal = 0
	m.time += 1_000_000
	keys := m.r.Perm(12)
	for range 1 + m.r.IntN(3) {
		id := int64(keys[0])
		keys = keys[1:]
		row, ok := m.rows[id]
		switch op := m.r.IntN(10); {
		case !ok:
			m.emit(event{op: change.Create, key: id, row: m.random(id, nil)})
		case op == 0:
			e := event{op: change.Delete, key: id}
			if m.r.IntN(2) == 0 {
				e.before = row
			}
			m.emit(e)
		case op == 1 && m.rows[int64(keys[0])] == nil:
			to := int64(keys[0])
			keys = keys[1:]
			moved := m.random(to, row)
			m.emit(event{op: change.Delete, key: id, other: to, moved: true})
			m.emit(event{op: change.Create, key: to, other: id, moved: true, row: moved})
		default:
			e := event{op: change.Update, key: id, row: m.random(id, row), unsent: map[int]bool{}}
			for _, c := range m.columns {
				if c.Type.Kind == catalog.Text && !c.Dropped && row[c.id] != nil && m.r.IntN(2) == 0 {
					e.row[c.id], e.unsent[c.id] = row[c.id], true
				}
			}
			if len(e.unsent) == 0 && m.r.IntN(2) == 0 {
				e.before = row
			}
			m.emit(e)
		}
	}
}

// random is a row, most of it as it was.
func (m *evolving) random(id int64, was values) values {
	row := values{1: id}
	for _, c := range m.columns[1:] {
		switch {
		case c.Dropped:
		case was != nil && m.r.IntN(3) > 0:
			row[c.id] = was[c.id]
		default:
			row[c.id] = m.value(c.Type)
		}
	}
	return row
}

func (m *evolving) value(t catalog.Type) any {
	if m.r.IntN(5) == 0 {
		return nil
	}
	switch t.Kind { //nolint:exhaustive // the model has no others
	case catalog.Int32:
		return int64(int32(m.r.Uint32()))
	case catalog.Int64:
		return int64(m.r.Uint64())
	case catalog.Float32:
		return float64(float32(m.r.NormFloat64()))
	case catalog.Float64:
		return m.r.NormFloat64()
	case catalog.Decimal:
		n := int64(999_999_999)
		if t.Precision > 9 {
			n = 999_999_999_999_999_999
		}
		return m.r.Int64N(2*n+1) - n
	case catalog.List:
		return fmt.Sprint([]int64{int64(m.r.IntN(9)), -int64(m.r.IntN(1 << 30))})
	default:
		return fmt.Sprintf("text %d", m.r.IntN(1000))
	}
}

// emit writes the log, and does to rows and history what it says.
func (m *evolving) emit(e event) {
	m.pos.Ordinal += 2
	e.at, e.time = m.pos, m.time
	m.events = append(m.events, e)
	versions := m.history[e.key]
	last := len(versions) - 1
	isOpen := last >= 0 && versions[last].to == fold.Open
	if e.op == change.Delete {
		delete(m.rows, e.key)
		versions[last].to = e.time
		return
	}
	m.rows[e.key] = e.row
	switch {
	case isOpen && maps.Equal(m.whole(versions[last].row), m.whole(e.row)):
	case isOpen:
		versions[last].to = e.time
		fallthrough
	default:
		m.history[e.key] = append(versions, interval{e.time, fold.Open, e.row})
	}
}

// whole is a row with every column.
func (m *evolving) whole(v values) values {
	out := values{}
	for _, c := range m.columns {
		out[c.id] = v[c.id]
	}
	return out
}

// fill gives every row that is there, and every open version, a column's value.
func (m *evolving) fill(id int, v any) {
	for key, row := range m.rows {
		row = maps.Clone(row)
		row[id] = v
		m.rows[key] = row
	}
	for _, versions := range m.history {
		if last := len(versions) - 1; last >= 0 && versions[last].to == fold.Open {
			row := maps.Clone(versions[last].row)
			row[id] = v
			versions[last].row = row
		}
	}
}

// fills are what fill was called for, as they are told to the lake.
func (m *evolving) fills() []pipeline.Fill {
	var out []pipeline.Fill
	for _, f := range m.filled {
		for _, c := range m.columns {
			if c.id == f.id && !c.Dropped {
				rows := change.NewRows(&catalog.Schema{Columns: []catalog.Column{c.Column}})
				row := rows.Add()
				setValue(rows, row, 0, c.Type, f.value)
				var text []byte
				if c.Type.Fixed() {
					text = typemap.AppendText(nil, c.Type, rows.Fixed(row, 0), nil)
				} else {
					text = typemap.AppendText(nil, c.Type, 0, rows.Bytes(row, 0))
				}
				out = append(out, pipeline.Fill{Column: c.Name, Value: string(text), At: f.at, CommitTime: f.time})
			}
		}
	}
	return out
}

// batch takes the log so far as changes under the schema of today.
func (m *evolving) batch(schema *catalog.Schema) *change.Batch {
	f := newFeed(m.table(), schema)
	f.schema = schema
	rows := change.NewRows(schema)
	f.batch.Rows = rows
	image := func(v values, unsent map[int]bool, keyOnly bool) int {
		row := rows.Add()
		for i, c := range m.columns {
			switch {
			case keyOnly && i > 0:
				rows.SetMark(row, i, change.Absent)
			case unsent[c.id]:
				rows.SetMark(row, i, change.Unavailable)
			default:
				setValue(rows, row, i, c.Type, v[c.id])
			}
		}
		return row
	}
	for _, e := range m.events {
		before, after, other := -1, -1, -1
		if e.op != change.Delete {
			after = image(e.row, e.unsent, false)
		}
		switch {
		case e.before != nil:
			before = image(e.before, nil, false)
		case e.op == change.Delete:
			before = image(values{1: e.key}, nil, true)
		}
		if e.moved {
			other = image(values{1: e.other}, nil, true)
		}
		c := f.add(e.op, before, after, other)
		c.Position, c.CommitTime = e.at, e.time
	}
	m.past, m.events = append(m.past, m.events...), nil
	return f.batch
}

func setValue(rows *change.Rows, row, col int, t catalog.Type, v any) {
	switch v := v.(type) {
	case nil:
		rows.SetMark(row, col, change.Null)
	case float64:
		if t.Kind == catalog.Float32 {
			rows.SetFixed(row, col, int64(math.Float32bits(float32(v))))
		} else {
			rows.SetFixed(row, col, int64(math.Float64bits(v)))
		}
	case int64:
		if t.Fixed() {
			rows.SetFixed(row, col, v)
			return
		}
		hi := uint64(0)
		if v < 0 {
			hi = math.MaxUint64
		}
		rows.SetBytes(row, col, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, hi), uint64(v)))
	case string:
		if t.Kind != catalog.List {
			rows.SetBytes(row, col, []byte(v))
			return
		}
		var a, b int64
		_, _ = fmt.Sscanf(v, "[%d %d]", &a, &b)
		rows.SetBytes(row, col, typemap.AppendElemFixed(typemap.AppendElemFixed(nil, a), b))
	}
}

// valueIn reads a cell as the model has it.
func valueIn(rows *change.Rows, row, col int, t catalog.Type) any {
	if !rows.HasValue(row, col) {
		return nil
	}
	switch t.Kind { //nolint:exhaustive // the model has no others
	case catalog.Float32:
		return float64(math.Float32frombits(uint32(rows.Fixed(row, col))))
	case catalog.Float64:
		return math.Float64frombits(uint64(rows.Fixed(row, col)))
	case catalog.Text:
		return string(rows.Bytes(row, col))
	case catalog.List:
		var out []int64
		typemap.EachElem(rows.Bytes(row, col), true, func(_ bool, v int64, _ []byte) { out = append(out, v) })
		return fmt.Sprint(out)
	}
	if t.Fixed() {
		return rows.Fixed(row, col)
	}
	return int64(binary.BigEndian.Uint64(rows.Bytes(row, col)[8:]))
}

// line prints a row by the names of today.
func (m *evolving) line(v values) string {
	var parts []string
	for _, c := range m.columns {
		parts = append(parts, fmt.Sprintf("%s=%v", c.Name, v[c.id]))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func (m *evolving) currentText() string {
	var lines []string
	for _, row := range m.rows {
		lines = append(lines, m.line(row))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// bronzeText prints what was sent of each change, under the names of today.
func (m *evolving) bronzeText() string {
	var lines []string
	for _, e := range m.past {
		sent := maps.Clone(e.row)
		for id := range e.unsent {
			sent[id] = nil
		}
		lines = append(lines, fmt.Sprintf("%c %s %s", e.op, e.at, m.line(sent)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (m *evolving) historyText() string {
	var lines []string
	for _, versions := range m.history {
		for _, v := range versions {
			lines = append(lines, fmt.Sprintf("%d %d %s", v.from, v.to, m.line(v.row)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// shown prints a row that a reader sees, without Lakeweir's own columns.
func shown(s *catalog.Schema, rows *change.Rows, row int) string {
	return shownColumns(s, rows, row, func(name string) (string, bool) {
		return name, !strings.HasPrefix(name, "_") && !slices.Contains([]string{colValidFrom, colValidTo, colIsCurrent}, name)
	})
}

// shownAfter prints bronze's image after a change.
func shownAfter(s *catalog.Schema, rows *change.Rows, row int) string {
	return shownColumns(s, rows, row, func(name string) (string, bool) { return strings.CutPrefix(name, colAfter+".") })
}

func shownColumns(s *catalog.Schema, rows *change.Rows, row int, column func(name string) (string, bool)) string {
	var parts []string
	for col, c := range s.Columns {
		if name, ok := column(c.Name); ok {
			parts = append(parts, fmt.Sprintf("%s=%v", name, valueIn(rows, row, col, c.Type)))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
