package lake

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// keyFilter tells from the bounds of a file's key columns whether it may hold rows of
// some keys. Each column is looked at by itself: a file is left out only when one of
// them shows that it holds none.
type keyFilter struct {
	columns []columnFilter // in key order; empty when nothing can be told
}

type columnFilter struct {
	column int // of the schema's key
	ints   []int64
	texts  [][]byte
}

// newKeyFilter decodes the keys of a set that are known one by one.
func newKeyFilter(schema *catalog.Schema, keys *fold.KeySet) keyFilter {
	listed, ok := keys.Listed()
	if !ok {
		return keyFilter{}
	}
	columns := make([]columnFilter, len(schema.Key))
	for n := range schema.Key {
		columns[n].column = n
	}
	for _, key := range listed {
		for n, i := range schema.Key {
			if schema.Columns[i].Type.Fixed() {
				if len(key) < 8 {
					return keyFilter{}
				}
				columns[n].ints = append(columns[n].ints, int64(binary.BigEndian.Uint64(key)))
				key = key[8:]
				continue
			}
			size, used := binary.Uvarint(key)
			if used <= 0 || uint64(len(key)-used) < size {
				return keyFilter{}
			}
			columns[n].texts = append(columns[n].texts, key[used:used+int(size)])
			key = key[used+int(size):]
		}
	}
	var f keyFilter
	for n, i := range schema.Key {
		if c := &columns[n]; ordered(&schema.Columns[i]) {
			slices.Sort(c.ints)
			slices.SortFunc(c.texts, bytes.Compare)
			f.columns = append(f.columns, *c)
		}
	}
	return f
}

// ordered reports whether a key column's values are ordered in a key as they are in a
// file's bounds.
func ordered(c *catalog.Column) bool {
	if !change.KeyExact(c) {
		return false
	}
	switch c.Type.Kind {
	case catalog.Int32, catalog.Int64, catalog.Date, catalog.Time, catalog.Timestamp, catalog.TimestampTZ, catalog.Text, catalog.UUID:
		return true
	case catalog.Bool, catalog.Float32, catalog.Float64, catalog.Decimal, catalog.Binary, catalog.List:
	}
	return false
}

// mayHold reports whether a file may have rows of the keys; ids are the fields of the
// key columns.
func (f keyFilter) mayHold(file *dataFile, ids []int) bool {
	for i := range f.columns {
		c := &f.columns[i]
		lo, hi := file.lower[ids[c.column]], file.upper[ids[c.column]]
		if lo != nil && hi != nil && !c.between(lo, hi) {
			return false
		}
	}
	return true
}

// between reports whether one of the values lies within the bounds.
func (c *columnFilter) between(lo, hi []byte) bool {
	if len(c.texts) > 0 {
		i, _ := slices.BinarySearchFunc(c.texts, lo, bytes.Compare)
		return i < len(c.texts) && bytes.Compare(c.texts[i], hi) <= 0
	}
	from, ok1 := readInt(lo)
	to, ok2 := readInt(hi)
	if !ok1 || !ok2 {
		return true
	}
	i, _ := slices.BinarySearch(c.ints, from)
	return i < len(c.ints) && c.ints[i] <= to
}
