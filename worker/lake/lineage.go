package lake

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/lakeweir/lakeweir/catalog"
)

// propColumns is a table's property that says which columns of the source it has, and
// what they were called before. It changes in one commit with the columns themselves, so
// that two columns that swapped their names are never taken for each other, however
// often an evolution is done again. Tables of before columns could evolve lack it.
const propColumns = "lakeweir.columns"

// lineage is what propColumns holds.
type lineage struct {
	Version int             `json:"version"` // of the schema, as the registry counts
	Columns []lineageColumn `json:"columns"`
	Key     []string        `json:"key,omitempty"`
}

type lineageColumn struct {
	Name    string   `json:"name"`
	Number  int      `json:"number,omitempty"`
	Was     []string `json:"was,omitempty"`
	Dropped bool     `json:"dropped,omitempty"`
}

func lineageOf(s *catalog.Schema) *lineage {
	out := &lineage{Version: s.Version}
	for _, c := range s.Columns {
		out.Columns = append(out.Columns, lineageColumn{c.Name, c.Number, c.Was, c.Dropped})
	}
	for _, i := range s.Key {
		out.Key = append(out.Key, s.Columns[i].Name)
	}
	return out
}

// readLineage returns a table's lineage, or nil when it has none.
func readLineage(p iceberg.Properties) *lineage {
	out := &lineage{}
	if text := p[propColumns]; text == "" || json.Unmarshal([]byte(text), out) != nil {
		return nil
	}
	return out
}

func (l *lineage) properties() (iceberg.Properties, error) {
	b, err := json.Marshal(l)
	return iceberg.Properties{propColumns: string(b)}, err
}

func (l *lineage) index(name string) int {
	return slices.IndexFunc(l.Columns, func(c lineageColumn) bool { return c.Name == name })
}

// path is every name that the column had, today's last.
func (c lineageColumn) path() []string { return append(slices.Clone(c.Was), c.Name) }

// mayBe reports whether the numbers of two columns do not say that they are different
// ones.
func (c lineageColumn) mayBe(o lineageColumn) bool {
	return c.Number == o.Number || c.Number == 0 || o.Number == 0
}

// follow returns, for each column of next, which column of l it is, or -1 when it is
// new. A column is what its names say: the one whose names it continues, first of all,
// and else the one of the same name, unless the source's attribute number is one that no
// column had yet. Where names say nothing that number does.
func (l *lineage) follow(next *lineage) []int {
	out := make([]int, len(next.Columns))
	for i := range out {
		out[i] = -1
	}
	taken := make([]bool, len(l.Columns))
	pass := func(is func(was, now lineageColumn) bool) {
		for i, now := range next.Columns {
			best := -1
			for j, was := range l.Columns {
				if out[i] < 0 && !taken[j] && is(was, now) && (best < 0 || len(was.Was) > len(l.Columns[best].Was)) {
					best = j
				}
			}
			if best >= 0 {
				out[i], taken[best] = best, true
			}
		}
	}
	// Renamed ones first: where a column gave its name to a new one, both names lead to
	// what it was.
	pass(func(was, now lineageColumn) bool {
		p, n := was.path(), now.path()
		return len(p) < len(n) && slices.Equal(p, n[:len(p)]) && was.mayBe(now)
	})
	pass(func(was, now lineageColumn) bool {
		return was.Name == now.Name && slices.Equal(was.Was, now.Was) && was.mayBe(now)
	})
	newest := 0
	for _, was := range l.Columns {
		newest = max(newest, was.Number)
	}
	pass(func(was, now lineageColumn) bool {
		return was.Name == now.Name && (was.mayBe(now) || now.Number <= newest)
	})
	pass(func(was, now lineageColumn) bool { return was.Number == now.Number && was.Number != 0 })
	return out
}

// contradicts lists where the lake's columns are other ones than those of a schema,
// though they have the same names.
func (l *lineage) contradicts(s *catalog.Schema) []string {
	if l == nil {
		return nil
	}
	var out []string
	for _, now := range lineageOf(s).Columns {
		i := l.index(now.Name)
		if i < 0 {
			continue
		}
		have := l.Columns[i]
		switch {
		case slices.Equal(have.Was, now.Was):
		case len(now.Was) == 0 && have.mayBe(now): // of who does not know former names
		case len(have.Was) > 0:
			out = append(out, fmt.Sprintf("column %q was called %q before", now.Name, have.Was[len(have.Was)-1]))
		default:
			out = append(out, fmt.Sprintf("column %q is not the one that was called %q", now.Name, now.Was[len(now.Was)-1]))
		}
	}
	return out
}

// formerNames returns which column of the schema each name meant before that no column
// has now, by the schema's own account and the table's.
func (l *lineage) formerNames(s *catalog.Schema) map[string]int {
	out := map[string]int{}
	for i, c := range s.Columns {
		was := c.Was
		if l != nil && len(was) == 0 {
			if n := l.index(c.Name); n >= 0 {
				was = l.Columns[n].Was
			}
		}
		for _, name := range was {
			if s.Index(name) < 0 {
				out[name] = i
			}
		}
	}
	return out
}
