package fold

import (
	"hash/fnv"

	"github.com/lakeweir/lakeweir/worker/change"
)

// KeySet is some of a table's keys, or all of them, or one part of all of them.
type KeySet struct {
	keys        map[string]struct{}
	along       map[string]struct{} // keys that Follow added
	all         bool
	part, parts uint64
}

// NewKeySet returns a set of these keys.
func NewKeySet(keys ...[]byte) *KeySet {
	s := &KeySet{keys: make(map[string]struct{}, len(keys))}
	s.Add(keys...)
	return s
}

// AllKeys returns the set of every key.
func AllKeys() *KeySet { return PartOfKeys(0, 1) }

// PartOfKeys returns one of some parts, about equal, of all keys; parts are numbered
// from 0.
func PartOfKeys(part, parts int) *KeySet {
	return &KeySet{all: true, part: uint64(part), parts: uint64(parts), keys: map[string]struct{}{}}
}

// Add adds keys.
func (s *KeySet) Add(keys ...[]byte) {
	for _, k := range keys {
		if len(k) > 0 && !s.Has(k) {
			s.keys[string(k)] = struct{}{}
		}
	}
}

// Has reports whether the set has the key.
func (s *KeySet) Has(key []byte) bool {
	if s.all && (s.parts == 1 || partOf(key, s.parts) == s.part) {
		return true
	}
	if _, ok := s.keys[string(key)]; ok {
		return true
	}
	_, ok := s.along[string(key)]
	return ok
}

func partOf(key []byte, parts uint64) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(key)
	return h.Sum64() % parts
}

// Every reports whether the set has every key.
func (s *KeySet) Every() bool { return s.all && s.parts == 1 }

// maxParts is how far all keys are taken apart.
const maxParts = 1 << 14

// Single reports whether the set cannot be taken apart.
func (s *KeySet) Single() bool { return !s.all && len(s.keys) <= 1 || s.parts >= maxParts }

// Listed returns the keys when they are known one by one; of parts of all keys it
// returns false.
func (s *KeySet) Listed() (keys [][]byte, ok bool) {
	if s.all {
		return nil, false
	}
	for _, m := range []map[string]struct{}{s.keys, s.along} {
		for k := range m {
			keys = append(keys, []byte(k))
		}
	}
	return keys, true
}

// Halves takes the set apart into two, without the keys that Follow added.
func (s *KeySet) Halves() []*KeySet {
	if s.all {
		return []*KeySet{PartOfKeys(int(s.part), int(2*s.parts)), PartOfKeys(int(s.part+s.parts), int(2*s.parts))}
	}
	halves := []*KeySet{NewKeySet(), NewKeySet()}
	n := 0
	for k := range s.keys {
		halves[n%2].keys[k] = struct{}{}
		n++
	}
	return halves
}

// Concerns reports whether a change concerns the set: it is at one of the keys, moves
// a row from or to one, or is a truncate.
func (s *KeySet) Concerns(c *change.Change) bool {
	return c.Op == change.Truncate || s.Has(c.Key) || len(c.OtherKey) > 0 && s.Has(c.OtherKey)
}

// Pick appends to a batch copies of another's changes at the keys, and its truncates.
func (s *KeySet) Pick(into, from *change.Batch) {
	for i := range from.Changes {
		if c := &from.Changes[i]; c.Op == change.Truncate || s.Has(c.Key) {
			into.Changes = append(into.Changes, copyChange(into.Rows, from.Rows, *c))
		}
	}
}

func copyChange(into, from *change.Rows, c change.Change) change.Change {
	for _, row := range []*int{&c.Before, &c.After, &c.Other} {
		if *row >= 0 {
			*row = into.CopyRow(from, *row)
		}
	}
	return c
}

// Follow adds the keys that share values with those of the set: a row that moves
// without its large values has at the new key what it had at the old one. It reports
// whether there are any that the set did not have.
func (s *KeySet) Follow(b *change.Batch) bool {
	grown := false
	for i := range b.Changes {
		c := &b.Changes[i]
		if !c.MovedIn() || s.Has(c.Key) == s.Has(c.OtherKey) || !hasUnavailable(b.Rows, c.After) {
			continue
		}
		if s.along == nil {
			s.along = map[string]struct{}{}
		}
		other := c.Key
		if s.Has(c.Key) {
			other = c.OtherKey
		}
		s.along[string(other)] = struct{}{}
		grown = true
	}
	return grown
}
