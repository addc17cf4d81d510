package catalog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// LSN is a place in a Postgres write-ahead log, in bytes.
type LSN uint64

// String prints the LSN as Postgres does: "16/B374D848".
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint32(l>>32), uint32(l)) }

// ParseLSN reads what String prints.
func ParseLSN(s string) (LSN, error) {
	hi, lo, ok := strings.Cut(s, "/")
	h, err1 := strconv.ParseUint(hi, 16, 32)
	l, err2 := strconv.ParseUint(lo, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return 0, fmt.Errorf("%q is not an LSN such as 16/B374D848", s)
	}
	return LSN(h<<32 | l), nil
}

// Position is the place of one change in its table's order, which is commit
// order: a transaction that commits later has a higher Commit, however early it
// wrote. It also is the key order: of two changes of one key the higher position
// is the later one, since row locks serialise them. An incremental read stands
// where it was read. The LSN of the change itself is no position: a long
// transaction commits late with low LSNs.
type Position struct {
	Generation uint32 // the reading of the table this belongs to, from 1
	Commit     LSN    // the LSN of the transaction's commit record; of a chunk, one less than the end of the log when it was read (odd, so it never ties with a commit)
	Ordinal    uint64 // place in the transaction or chunk; a message's index times two, plus one for the second half of a key move
}

// Compare orders positions: negative when p is before q.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Generation, q.Generation), cmp.Compare(p.Commit, q.Commit), cmp.Compare(p.Ordinal, q.Ordinal))
}

// IsZero reports whether p is before every change.
func (p Position) IsZero() bool { return p == Position{} }

// String prints "g1 16/B374D848 #4".
func (p Position) String() string {
	return fmt.Sprintf("g%d %s #%d", p.Generation, p.Commit, p.Ordinal)
}

// Epoch is one life of a source's log. Positions of different epochs cannot be
// compared; a change of epoch is a gap unless the new timeline provably forked
// after the cursor.
type Epoch struct {
	System   string // Postgres: the system identifier
	Timeline uint32
}

// String prints "7312345678901234567.1".
func (e Epoch) String() string { return e.System + "." + strconv.FormatUint(uint64(e.Timeline), 10) }

// Cursor is how far a layer has come: it holds every change of its table up to
// and including Position, in this epoch.
type Cursor struct {
	Epoch    Epoch
	Position Position
}

// IsZero reports whether nothing has been read yet.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// String prints the form that stands in the Iceberg snapshot summary:
// "7312345678901234567.1 g1 16/B374D848 #4".
func (c Cursor) String() string { return c.Epoch.String() + " " + c.Position.String() }

// ParseCursor reads what Cursor.String prints.
func ParseCursor(s string) (Cursor, error) {
	bad := fmt.Errorf("%q is not a cursor such as \"7312345678901234567.1 g1 16/B374D848 #4\"", s)
	epoch, place, _ := strings.Cut(s, " ")
	i := strings.LastIndexByte(epoch, '.')
	if i < 0 {
		return Cursor{}, bad
	}
	timeline, err1 := strconv.ParseUint(epoch[i+1:], 10, 32)
	position, err2 := ParsePosition(place)
	if err1 != nil || err2 != nil {
		return Cursor{}, bad
	}
	return Cursor{Epoch: Epoch{System: epoch[:i], Timeline: uint32(timeline)}, Position: position}, nil
}
