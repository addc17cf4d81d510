package reconcile

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// columnTotal sums up one column of one side, in any order of rows.
type columnTotal struct {
	typ    catalog.Type
	nulls  int64
	hashes uint64 // sum over the texts, modulo 2^64
	hi, lo uint64 // sum of the values of numbers, as 128 bits
	summed bool   // false: not numbers, or beyond 38 digits
	buf    []byte
}

func newColumnTotal(t catalog.Type) columnTotal {
	c := columnTotal{typ: t}
	switch t.Kind {
	case catalog.Int32, catalog.Int64, catalog.Decimal:
		c.summed = true
	case catalog.Text, catalog.Bool, catalog.Float32, catalog.Float64, catalog.Date, catalog.Time, catalog.Timestamp,
		catalog.TimestampTZ, catalog.UUID, catalog.Binary, catalog.List:
	}
	return c
}

func (c *columnTotal) add(text []byte) {
	if text == nil {
		c.nulls++
		return
	}
	c.hashes += xxh3.Hash(text)
	if !c.summed {
		return
	}
	fixed, value, err := typemap.Decode(c.typ, text, c.buf)
	if err != nil { // shown as a difference
		c.summed = false
		return
	}
	hi, lo := uint64(fixed>>63), uint64(fixed)
	if !c.typ.Fixed() {
		c.buf = value
		hi, lo = binary.BigEndian.Uint64(value), binary.BigEndian.Uint64(value[8:])
	}
	var carry uint64
	wasNegative := int64(c.hi) < 0
	c.lo, carry = bits.Add64(c.lo, lo, 0)
	c.hi, _ = bits.Add64(c.hi, hi, carry)
	if wasNegative == (int64(hi) < 0) && (int64(c.hi) < 0) != wasNegative { // past 128 bits
		c.summed = false
	}
}

// sum returns the sum as text, or "" when there is none.
func (c *columnTotal) sum() string {
	if !c.summed {
		return ""
	}
	wide := catalog.Type{Kind: catalog.Decimal, Precision: 38, Scale: c.typ.Scale}
	value := binary.BigEndian.AppendUint64(nil, c.hi)
	value = binary.BigEndian.AppendUint64(value, c.lo)
	return string(typemap.AppendText(nil, wide, 0, value))
}

func (c *columnTotal) equal(o *columnTotal) bool {
	return c.nulls == o.nulls && c.hashes == o.hashes && c.summed == o.summed && c.hi == o.hi && c.lo == o.lo
}
