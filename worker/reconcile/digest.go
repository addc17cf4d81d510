package reconcile

import (
	"cmp"
	"encoding/binary"

	"github.com/zeebo/xxh3"

	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// digest stands for a key or a row. Two different ones of a table of a billion
// rows have one digest with a chance of one in 10^20.
type digest struct{ hi, lo uint64 }

func (d digest) compare(o digest) int {
	return cmp.Or(cmp.Compare(d.hi, o.hi), cmp.Compare(d.lo, o.lo))
}

// rowText is a row as text, column by column; nil is NULL, and an empty text is
// not. Rows are reused: whoever keeps one copies it.
type rowText [][]byte

// digester computes digests; not safe for concurrent use.
type digester struct {
	buf, text []byte
	// forms, when not nil, are those of the key's columns: keys that the source holds
	// equal have one digest, however they print.
	forms []typemap.KeyForm
}

// ofKey returns the digest of a row's key.
func (d *digester) ofKey(row rowText, key []int) digest {
	d.buf = d.buf[:0]
	for i, col := range key {
		d.keyCell(i, row[col])
	}
	return d.sum()
}

// keyCell appends the text of the key's n-th column.
func (d *digester) keyCell(n int, text []byte) {
	if text == nil || d.forms == nil {
		d.cell(text)
		return
	}
	var buf [48]byte
	d.cell(typemap.KeyText(d.forms[n], text, buf[:0]))
}

// of returns the digest of the given columns of a row, of all when columns is nil.
func (d *digester) of(row rowText, columns []int) digest {
	d.buf = d.buf[:0]
	if columns == nil {
		for _, text := range row {
			d.cell(text)
		}
	} else {
		for _, i := range columns {
			d.cell(row[i])
		}
	}
	return d.sum()
}

// cell appends a text with its length, so that neighbours cannot run together.
func (d *digester) cell(text []byte) {
	if text == nil {
		d.buf = append(d.buf, 0)
		return
	}
	d.buf = binary.AppendUvarint(d.buf, uint64(len(text))+1)
	d.buf = append(d.buf, text...)
}

// number appends a number of fixed width.
func (d *digester) number(v uint64) { d.buf = binary.LittleEndian.AppendUint64(d.buf, v) }

// sum returns the digest of what was appended, and never the zero digest, which
// means none.
func (d *digester) sum() digest {
	h := xxh3.Hash128(d.buf)
	if h.Hi == 0 && h.Lo == 0 {
		return digest{0, 1}
	}
	return digest{h.Hi, h.Lo}
}
