package postgres

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// u16 and u32 build messages.
func u16(b []byte, v int) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func u32(b []byte, v int) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

func textCell(b []byte, v string) []byte { return append(u32(append(b, 't'), len(v)), v...) }

func FuzzRelationMessages(f *testing.F) {
	b := append(u32(nil, 16384), "public\x00doc\x00d"...)
	b = u16(b, 2)
	b = u32(u32(append(append(b, 1), "id\x00"...), 23), -1)
	b = u32(u32(append(append(b, 0), "title\x00"...), 25), -1)
	f.Add(b)
	f.Add([]byte{})
	f.Add(u16(append(u32(nil, 1), "\x00t\x00f"...), 0xffff))
	same := u16(append(u32(nil, 1), "public\x00doc\x00f"...), 4)
	for _, name := range []string{"id", "title", "n", "tags"} {
		same = u32(u32(append(append(same, 1), name+"\x00"...), 25), -1)
	}
	f.Add(same)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseRelation(data)
		if err == nil {
			require.LessOrEqual(t, len(m.columns)*10, len(data))
			r := relation{relationMessage: m, undone: len(data)%3 == 0}
			r.bind(fuzzSchema, len(data)%2 == 1)
			require.Len(t, r.columns, len(m.columns))
			for _, col := range r.columns {
				require.Less(t, col, len(fuzzSchema.Columns))
			}
			requireShapesAreTold(t, m.columns)
		}
	})
}

// requireShapesAreTold compares the described columns with the lake's, as if the
// catalog had them still, and as if it had the lake's again.
func requireShapesAreTold(t *testing.T, columns []wireColumn) {
	t.Helper()
	types := make([]columnType, len(columns))
	now := make([]attribute, len(columns))
	for i, c := range columns {
		types[i] = columnType{source: catalog.SourceType{Base: "text", Name: "text"}, field: c}
		now[i] = attribute{wireColumn: c, number: i + 1}
	}
	then := columnsOf(types, now)
	lake := &catalog.Schema{Key: fuzzSchema.Key}
	for i, c := range fuzzSchema.Columns {
		c.Number, c.Type = i+1, catalog.Type{Kind: catalog.Text}
		lake.Columns = append(lake.Columns, c)
	}
	if shapeDifference(lake, then) != "" {
		require.False(t, undone(lake, then, now), "what the catalog has still is not undone")
		return
	}
	require.Len(t, then.Columns, len(lake.Columns))
	for i, c := range then.Columns {
		require.Equal(t, lake.Columns[i].Name, c.Name)
	}
}

var fuzzSchema = &catalog.Schema{
	Columns: []catalog.Column{
		{Name: "id", Type: catalog.Type{Kind: catalog.Int32}},
		{Name: "title", Type: catalog.Type{Kind: catalog.Text}},
		{Name: "n", Type: catalog.Type{Kind: catalog.Decimal, Precision: 20, Scale: 2}},
		{Name: "tags", Type: catalog.Type{Kind: catalog.List, Elem: &catalog.Type{Kind: catalog.Int64}}},
	},
	Key: []int{0},
}

func FuzzRowMessages(f *testing.F) {
	insert := textCell(textCell(u16(append(u32(nil, 1), 'N'), 4), "1"), "a")
	insert = append(textCell(insert, "3.50"), 'n')
	f.Add(byte('I'), insert)
	update := textCell(u16(append(u32(nil, 1), 'K'), 4), "1")
	update = append(update, 'n', 'n', 'n')
	update = append(textCell(u16(append(update, 'N'), 4), "2"), 'u', 'n')
	f.Add(byte('U'), textCell(update, "{1,NULL,3}"))
	f.Add(byte('D'), append(textCell(u16(append(u32(nil, 1), 'K'), 4), "1"), 'n', 'n', 'n'))
	f.Add(byte('U'), []byte{0, 0, 0, 1, 'N', 0xff, 0xff})
	f.Fuzz(func(t *testing.T, op byte, data []byte) {
		if op != 'I' && op != 'U' && op != 'D' {
			return
		}
		m, err := parseRow(op, data)
		if err != nil {
			return
		}
		tab := &table{cfg: &catalog.Table{Source: "s", Name: catalog.ParseTableName("t"), PrimaryKey: []string{"id"}}, name: "public.t", schema: fuzzSchema}
		r := &relation{columns: []int{0, 1, 2, 3}, covers: true, bound: true}
		r.relationMessage.columns = []wireColumn{{name: "id", identity: true}, {name: "title"}, {name: "n"}, {name: "tags"}}
		if fault := tab.decodeRow(r, op, m, change.Change{}); fault != nil {
			require.NotEmpty(t, fault.Message)
			return
		}
		for _, c := range tab.batch.changes {
			require.NotEmpty(t, c.Key)
			for _, row := range []int{c.Before, c.After, c.Other} {
				require.Less(t, row, tab.batch.rows.Len())
			}
		}
	})
}

func FuzzOtherMessages(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Add(append(u32(nil, 2), 0, 0, 0, 0, 1, 0, 0, 0, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = parseBegin(data)
		_, _ = parseCommit(data)
		ids, err := parseTruncate(data)
		if err == nil {
			require.LessOrEqual(t, 4*len(ids), len(data))
		}
		_, _ = parseForks(data)
		_, _ = change.ParseVisibility(string(data))
	})
}
