package fold

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// RemakeCurrent returns what makes the current layer show what was derived, for the
// keys of the set. found are the layer's rows of those keys, with images. When bronze
// has been cut, a value that the same change left in the layer stays, although bronze
// has it no more.
func RemakeCurrent(keys *KeySet, d *Derivation, found []CurrentFound) CurrentResult {
	var r CurrentResult
	held := make(map[string]*CurrentFound, len(found))
	for i := range found {
		held[string(found[i].Key)] = &found[i]
	}
	stays := map[string]*CurrentFound{} // of each derived key the row that may stay, or nil
	for key, row := range d.Rows() {
		if !keys.Has(key) {
			continue
		}
		f := held[string(key)]
		if f != nil && d.cut && f.Row.Stamp == row.Stamp {
			fillUnavailable(row.Image.Rows, row.Image.Row, f.Row.Image)
		}
		if f != nil && f.Row.Deleted == row.Deleted && f.Row.FromSnapshot == row.FromSnapshot && f.Row.Stamp == row.Stamp && identical(f.Row.Image, row.Image) {
			stays[string(key)] = f
			continue
		}
		r.Write = append(r.Write, row)
		if hasUnavailable(row.Image.Rows, row.Image.Row) {
			r.Unavailable++
		}
		stays[string(key)] = nil
	}
	for i := range found {
		f := &found[i]
		if !keys.Has(f.Key) {
			continue
		}
		same, derived := stays[string(f.Key)]
		// Of a row that was marked as deleted, bronze may hold the delete alone.
		if same == f || !derived && f.Row.Deleted && d.deleted(f.Key, f.Row.Stamp.Position) {
			continue
		}
		r.Remove = append(r.Remove, f.Place)
	}
	return r
}

// deleted reports whether bronze has a delete at the position, of a row that it does
// not have.
func (d *Derivation) deleted(key []byte, at catalog.Position) bool {
	return d.orphans[string(key)] == at
}

// RemakeHistory is RemakeCurrent for the history layer; found are all versions of the
// keys.
func RemakeHistory(keys *KeySet, d *Derivation, found []VersionFound) HistoryResult {
	var r HistoryResult
	type identity struct {
		key  string
		from int64
		at   catalog.Position
	}
	held := make(map[identity][]int, len(found))
	for i := range found {
		id := identity{string(found[i].Key), found[i].Row.From, found[i].Row.Stamp.Position}
		held[id] = append(held[id], i)
	}
	stays := make([]bool, len(found))
	for key, v := range d.Versions() {
		if !keys.Has(key) {
			continue
		}
		at := -1
		for _, i := range held[identity{string(key), v.From, v.Stamp.Position}] {
			if !stays[i] && sameVersion(&found[i].Row, &v) {
				at = i
			}
		}
		if at < 0 {
			r.Write = append(r.Write, v)
			continue
		}
		stays[at] = true
	}
	for i := range found {
		if !stays[i] && keys.Has(found[i].Key) {
			r.Remove = append(r.Remove, found[i].Place)
		}
	}
	return r
}

func sameVersion(a, b *Version) bool {
	return a.From == b.From && a.To == b.To && a.Op == b.Op && a.Stamp == b.Stamp && identical(a.Image, b.Image)
}

// orphan notes a delete of a row that bronze does not have.
func (d *Derivation) orphan(ch *change.Change) {
	if d.orphans == nil {
		d.orphans = map[string]catalog.Position{}
	}
	d.orphans[string(ch.Key)] = ch.Position
}
