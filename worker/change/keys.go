package change

// Keys makes lasting copies of rows' keys, many in few allocations. The zero value is
// ready; not safe for concurrent use.
type Keys struct {
	block   []byte
	scratch []byte
}

// Of returns the key of a row, empty for a table without one. It fails as AppendKey does.
func (k *Keys) Of(rows *Rows, row int) ([]byte, error) {
	if len(rows.schema.Key) == 0 {
		return nil, nil
	}
	var err error
	k.scratch, err = rows.AppendKey(k.scratch[:0], row)
	if err != nil {
		return nil, err
	}
	if len(k.block)+len(k.scratch) > cap(k.block) {
		k.block = make([]byte, 0, max(4<<10, min(2*cap(k.block), 256<<10), len(k.scratch)))
	}
	n := len(k.block)
	k.block = append(k.block, k.scratch...)
	return k.block[n:len(k.block):len(k.block)], nil
}

// Differs reports whether a row has another key than the given one; one that lacks a part
// of its key has not.
func (k *Keys) Differs(rows *Rows, row int, key []byte) bool {
	var err error
	k.scratch, err = rows.AppendKey(k.scratch[:0], row)
	return err == nil && string(k.scratch) != string(key)
}
