package fold

import (
	"github.com/lakeweir/lakeweir/catalog"
)

// RemakeCurrent returns what makes the current layer show what was derived, for the
// keys of the set. found are the layer's rows of those keys, with images. When bronze
// has been cut, the layer may know more of a key than bronze does: its row only gives
// way to a later change. Rewrite has rows written that seem to be there already: what
// was looked up does not show all of their columns.
func RemakeCurrent(keys *KeySet, d *Derivation, found []CurrentFound, rewrite bool) CurrentResult {
	var r CurrentResult
	held := make(map[string]*CurrentFound, len(found))
	for i := range found {
		held[string(found[i].Key)] = &found[i]
	}
	stays := make(map[*CurrentFound]bool, len(found))
	for key, row := range d.Rows() {
		if !keys.Has(key) {
			continue
		}
		f := held[string(key)]
		if f != nil && d.cut && row.Stamp.Position.Compare(f.Row.Stamp.Position) <= 0 {
			stays[f] = true
			continue
		}
		if f != nil && !rewrite && f.Row.Deleted == row.Deleted && f.Row.FromSnapshot == row.FromSnapshot && f.Row.Stamp == row.Stamp && identical(f.Row.Image, row.Image) {
			stays[f] = true
			continue
		}
		r.Write = append(r.Write, row)
		if hasUnavailable(row.Image.Rows, row.Image.Row) {
			r.Unavailable++
		}
	}
	for i := range found {
		f := &found[i]
		if !keys.Has(f.Key) || stays[f] {
			continue
		}
		if _, derived := d.Row(f.Key); !derived && held[string(f.Key)] == f && !d.outdone(f.Key, &f.Row) {
			continue
		}
		r.Remove = append(r.Remove, f.Place)
	}
	return r
}

// outdone reports whether a row of the layer, where nothing was derived, is to go: in a
// bronze that was cut, only a delete from after the row's transaction tells so. One
// from within was of a row that bronze has lost.
func (d *Derivation) outdone(key []byte, row *CurrentRow) bool {
	if !d.cut {
		return true
	}
	at := row.Stamp.Position
	for _, p := range []catalog.Position{d.deletes[string(key)], d.truncated} {
		if p.Compare(at) > 0 && !SameTransaction(p, at) {
			return !row.Deleted
		}
	}
	return false
}

// RemakeHistory is RemakeCurrent for the history layer; found are all versions of the
// keys.
func RemakeHistory(keys *KeySet, d *Derivation, found []VersionFound, rewrite bool) HistoryResult {
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
			if !rewrite && !stays[i] && sameVersion(&found[i].Row, &v) {
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
