package lake

import (
	"context"
	"encoding/binary"
	"runtime/debug"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/lakeweir/lakeweir/worker/change"
)

// recordPlan is a run of rows that are encoded together.
type recordPlan struct {
	lo, hi int
	size   int
	alone  bool // one row, a row group of its own
	opens  bool // it does not fit into the row group before it
}

// writePlan is how rows are cut into records and row groups, by rows and by bytes.
type writePlan struct {
	records  []recordPlan
	perGroup int // rows
	memory   int // about how many bytes encoding them takes, the rows themselves not counted
}

// planRecords cuts rows by their average size, or, where some are large, one by one.
func planRecords(src rowSource) writePlan {
	n, size := src.len(), src.size()
	if !hasLarge(src) {
		each := max(1, size/n)
		p := writePlan{perGroup: min(rowGroupRows, max(1, rowGroupBytes/each)), memory: min(size, 2*rowGroupBytes)}
		step := min(recordRows, max(1, recordBytes/each))
		for lo := 0; lo < n; lo += step {
			hi := min(n, lo+step)
			p.records = append(p.records, recordPlan{lo: lo, hi: hi, size: (hi - lo) * each})
		}
		return p
	}
	p := writePlan{perGroup: rowGroupRows}
	group, all, most := 0, 0, 0
	for i := range n {
		size := src.rowSize(i)
		all, most = all+size, max(most, size)
		last := len(p.records) - 1
		switch {
		case size >= aloneBytes:
			p.records = append(p.records, recordPlan{lo: i, hi: i + 1, size: size, alone: true})
			group = rowGroupBytes // full
		case last >= 0 && !p.records[last].alone && p.records[last].size+size <= recordBytes && i-p.records[last].lo < recordRows && group+size <= rowGroupBytes:
			p.records[last].hi, p.records[last].size = i+1, p.records[last].size+size
			group += size
		default:
			opens := group+size > rowGroupBytes
			if opens {
				group = 0
			}
			p.records = append(p.records, recordPlan{lo: i, hi: i + 1, size: size, opens: opens})
			group += size
		}
	}
	p.memory = max(4*most, min(all, 2*rowGroupBytes))
	return p
}

func hasLarge(src rowSource) bool { return src.longest(nil) >= change.Large }

// withLarge returns a record of one row with the large values that were left out of
// it, as they are in the rows: they are not copied.
func withLarge(rec arrow.RecordBatch, src rowSource, row int) arrow.RecordBatch {
	columns := make([]arrow.Array, rec.NumCols())
	for i, f := range rec.Schema().Fields() {
		columns[i] = withLargeIn(rec.Column(i), []string{f.Name}, src, row)
	}
	out := array.NewRecordBatch(rec.Schema(), columns, 1)
	rec.Release()
	return out
}

func withLargeIn(arr arrow.Array, path []string, src rowSource, row int) arrow.Array {
	if st, ok := arr.(*array.Struct); ok && !st.IsNull(0) {
		data := st.Data()
		fields := make([]arrow.ArrayData, st.NumField())
		t, _ := st.DataType().(*arrow.StructType)
		for i := range fields {
			fields[i] = withLargeIn(st.Field(i), append(path[:1:1], t.Field(i).Name), src, row).Data()
		}
		return array.NewStructData(array.NewData(data.DataType(), 1, data.Buffers(), fields, 0, 0))
	}
	v := src.large(path, row)
	if v == nil {
		return arr
	}
	offsets := binary.LittleEndian.AppendUint32(make([]byte, 4, 8), uint32(len(v)))
	return array.MakeFromData(array.NewData(arr.DataType(), 1, []*memory.Buffer{nil, memory.NewBufferBytes(offsets), memory.NewBufferBytes(v)}, nil, 0, 0))
}

// tidy gives the garbage of what was done before back first, when something large is
// to be done: the blocks that it came in are not those that will be wanted, and the
// collector would let as much again come on top.
func tidy(value int64) {
	if value >= 24<<20 {
		debug.FreeOSMemory()
	}
}

// borrow waits for memory that encoding or decoding takes: what is large in several
// tables at once is done one after the other. Call what it returns to give it back.
func (l *Lake) borrow(ctx context.Context, size int) (release func(), err error) {
	n := min(int64(size), l.workBytes)
	if err := l.work.Acquire(ctx, n); err != nil {
		return nil, err
	}
	tidy(n / 4)
	return func() { l.work.Release(n) }, nil
}
