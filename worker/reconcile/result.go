package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Result is what the comparison of one table found. Texts of personal columns in
// it are as masked as they are in the lake.
type Result struct {
	Table string `json:"table"`
	// At is when the source was read, by its clock, and LSN its end of log then.
	At     time.Time `json:"at"`
	LSN    string    `json:"lsn"`
	Cursor string    `json:"cursor"` // where the compared layers stood
	Rounds int       `json:"rounds"`

	SourceRows int64          `json:"sourceRows"`
	LakeRows   int64          `json:"lakeRows"`
	Differing  int64          `json:"differing"` // rows, of every kind
	Kinds      map[Kind]int64 `json:"kinds,omitempty"`
	// Unsettled keys were changed again in every round: nothing is known of them.
	Unsettled   int64            `json:"unsettled"`
	Unfit       map[string]int64 `json:"unfit,omitempty"` // values that are NULL in the lake for want of a place, by column
	Columns     []ColumnTotals   `json:"columns,omitempty"`
	Differences []Difference     `json:"differences,omitempty"` // some of them

	// Repaired is how many keys differed before they were read again, and do not any
	// more; Repairs are some of them. Nil when nothing was to be repaired.
	Repaired *int64       `json:"repaired,omitempty"`
	Repairs  []Difference `json:"repairs,omitempty"`

	// Keys are those of the rows that differ, and those that the violations are of,
	// when Config.Keys asks for them, up to MaxKeys. They hold personal values in clear: they are for nobody's eyes, and
	// kept nowhere.
	Keys []DifferingKey `json:"-"`

	// Checked says that the layers were held against each other too; then the
	// following counts mean something.
	Checked       bool     `json:"checked"`
	BronzeEvents  int64    `json:"bronzeEvents"`
	HistoryRows   int64    `json:"historyRows"`
	Refolded      bool     `json:"refolded"`   // bronze was folded anew and compared with the layers
	Violations    int64    `json:"violations"` // of the rules that hold within the lake
	ViolationsAre []string `json:"violationsAre,omitempty"`
	Notes         []string `json:"notes,omitempty"` // what could not be checked

	Took time.Duration `json:"tookNanoseconds"`
}

// ColumnTotals sums up a column over the rows compared first, on both sides.
type ColumnTotals struct {
	Column      string `json:"column"`
	SourceNulls int64  `json:"sourceNulls"`
	LakeNulls   int64  `json:"lakeNulls"`
	SourceSum   string `json:"sourceSum,omitempty"` // of numbers
	LakeSum     string `json:"lakeSum,omitempty"`
	SourceHash  string `json:"sourceHash"` // sum of the hashes of the texts
	LakeHash    string `json:"lakeHash"`
	Equal       bool   `json:"equal"`
}

// Difference is one key that differs.
type Difference struct {
	Kind   Kind         `json:"kind"`
	Key    string       `json:"key"` // "order_id=17"
	Values []ValuePairs `json:"values,omitempty"`
}

// DifferingKey is a key that differs or of which something within the lake is wrong:
// the texts of its columns.
type DifferingKey struct {
	Kind Kind
	// Source is as the source prints it; nil when only the lake's is known.
	Source []string
	// Lake is as the lake shows it; nil when a part of it is NULL there, so that no
	// row of the source can have it.
	Lake []string
	// Violated says that a violation is of this key: current or history do not show
	// what bronze tells of it.
	Violated bool
}

// Text names the key as Difference.Key does.
func (k *DifferingKey) Text(t *catalog.Table) string { return nameKey(t, k.Lake) }

func nameKey(t *catalog.Table, texts []string) string {
	parts := make([]string, len(texts))
	for i, text := range texts {
		parts[i] = t.PrimaryKey[i] + "=" + text
	}
	return strings.Join(parts, " ")
}

// ValuePairs is one column of a differing row on both sides.
type ValuePairs struct {
	Column string  `json:"column"`
	Source *string `json:"source"` // null is NULL
	Lake   *string `json:"lake"`
}

// Equal reports whether nothing differs and nothing is wrong.
func (r *Result) Equal() bool { return r.Differing == 0 && r.Violations == 0 }

// Line sums the result up in one line.
func (r *Result) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  source=%d lake=%d differing=%d", r.Table, r.SourceRows, r.LakeRows, r.Differing)
	if r.Unsettled > 0 {
		fmt.Fprintf(&b, " unsettled=%d", r.Unsettled)
	}
	if r.Repaired != nil {
		fmt.Fprintf(&b, " repaired=%d", *r.Repaired)
	}
	if n := r.UnfitValues(); n > 0 {
		fmt.Fprintf(&b, " unfit=%d", n)
	}
	if r.Checked {
		fmt.Fprintf(&b, "  bronze_events=%d violations=%d", r.BronzeEvents, r.Violations)
	} else if r.Violations > 0 {
		fmt.Fprintf(&b, "  violations=%d", r.Violations)
	}
	if r.HistoryRows > 0 {
		fmt.Fprintf(&b, "  history=%d", r.HistoryRows)
	}
	return b.String()
}

// UnfitValues returns how many values of the source are NULL in the lake because
// they have no place there.
func (r *Result) UnfitValues() int64 {
	var n int64
	for _, c := range r.Unfit {
		n += c
	}
	return n
}

// Text returns the line with what there is to say of it below.
func (r *Result) Text() string {
	var b strings.Builder
	b.WriteString(r.Line() + "\n")
	for _, col := range slices.Sorted(maps.Keys(r.Unfit)) {
		fmt.Fprintf(&b, "    unfit: %d values of %s have no place in the lake's type and are NULL there\n", r.Unfit[col], col)
	}
	for _, c := range r.Columns {
		if !c.Equal {
			fmt.Fprintf(&b, "    column %s: NULLs %d/%d, sum %s/%s, hash total %s/%s (source/lake)\n", c.Column,
				c.SourceNulls, c.LakeNulls, orNone(c.SourceSum), orNone(c.LakeSum), c.SourceHash, c.LakeHash)
		}
	}
	for _, d := range r.Repairs {
		d.print(&b, "repaired ")
	}
	if r.Repaired != nil {
		if more := *r.Repaired - int64(len(r.Repairs)); more > 0 && len(r.Repairs) > 0 {
			fmt.Fprintf(&b, "    … and %d more repaired\n", more)
		}
	}
	for _, d := range r.Differences {
		d.print(&b, "")
	}
	if more := r.Differing - int64(len(r.Differences)); more > 0 && len(r.Differences) > 0 {
		fmt.Fprintf(&b, "    … and %d more\n", more)
	}
	for _, v := range r.ViolationsAre {
		fmt.Fprintf(&b, "    violation: %s\n", v)
	}
	if more := r.Violations - int64(len(r.ViolationsAre)); more > 0 && len(r.ViolationsAre) > 0 {
		fmt.Fprintf(&b, "    … and %d more\n", more)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "    note: %s\n", n)
	}
	return b.String()
}

func (d *Difference) print(b *strings.Builder, prefix string) {
	fmt.Fprintf(b, "    %s%s: %s\n", prefix, d.Kind, d.Key)
	for _, v := range d.Values {
		fmt.Fprintf(b, "        %s: source %s, lake %s\n", v.Column, shown(v.Source), shown(v.Lake))
	}
}

func orNone(sum string) string {
	if sum == "" {
		return "none"
	}
	return sum
}

// shownText is how much of a value is printed.
const shownText = 200

func shown(text *string) string {
	if text == nil {
		return "NULL"
	}
	if len(*text) > shownText {
		return fmt.Sprintf("%q… (%d bytes)", (*text)[:shownText], len(*text))
	}
	return fmt.Sprintf("%q", *text)
}

// keyText prints a key for people: "order_id=17 line=2".
func keyText(columns []catalog.Column, key []int, row rowText) string {
	parts := make([]string, len(key))
	for i, col := range key {
		value := "NULL"
		if row[col] != nil {
			value = string(row[col])
		}
		parts[i] = columns[col].Name + "=" + value
	}
	return strings.Join(parts, " ")
}
