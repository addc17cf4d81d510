package catalog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Place is where a table's changes stand at their source: a position, where the source
// gives one; the offsets of the table's topic, where it is read from one.
type Place struct {
	Position Position
	Offsets  *TopicOffsets
}

// IsZero reports whether p is no place.
func (p Place) IsZero() bool { return p.Position.IsZero() && p.Offsets == nil }

// Equal reports whether both are the same place.
func (p Place) Equal(q Place) bool { return p.Position == q.Position && p.Offsets.Equal(q.Offsets) }

// String prints the position, or else where the topic is read next: "g1 16/B374D848 #4",
// "shop.public.orders 0:4711". It is empty for the zero place.
func (p Place) String() string {
	if !p.Position.IsZero() {
		return p.Position.String()
	}
	if p.Offsets == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(p.Offsets.Topic)
	for _, o := range p.Offsets.Partitions {
		b.WriteString(" " + strconv.FormatInt(int64(o.Partition), 10) + ":" + strconv.FormatInt(o.Next, 10))
	}
	return b.String()
}

type placeDoc struct {
	Position string        `json:"position,omitempty"`
	Offsets  *TopicOffsets `json:"offsets,omitempty"`
}

// MarshalJSON writes the form that is stored; it is part of the database's.
func (p Place) MarshalJSON() ([]byte, error) {
	d := placeDoc{Offsets: p.Offsets}
	if !p.Position.IsZero() {
		d.Position = p.Position.String()
	}
	return json.Marshal(d)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Place) UnmarshalJSON(b []byte) error {
	var d placeDoc
	if err := json.Unmarshal(b, &d); err != nil {
		return err
	}
	q := Place{Offsets: d.Offsets}
	if d.Position != "" {
		var err error
		if q.Position, err = ParsePosition(d.Position); err != nil {
			return err
		}
	}
	*p = q
	return nil
}

// ParsePosition reads what Position.String prints.
func ParsePosition(s string) (Position, error) {
	bad := fmt.Errorf("%q is not a position such as \"g1 16/B374D848 #4\"", s)
	f := strings.Fields(s)
	if len(f) != 3 || !strings.HasPrefix(f[0], "g") || !strings.HasPrefix(f[2], "#") {
		return Position{}, bad
	}
	generation, err1 := strconv.ParseUint(f[0][1:], 10, 32)
	commit, err2 := ParseLSN(f[1])
	ordinal, err3 := strconv.ParseUint(f[2][1:], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return Position{}, bad
	}
	return Position{Generation: uint32(generation), Commit: commit, Ordinal: ordinal}, nil
}
