package tableconfig

import (
	"fmt"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// lakeTable is a table of the lake and the configured table it belongs to.
type lakeTable struct {
	id    string // as shown: silver.orders_history
	layer catalog.Layer
	of    *catalog.Table
}

// collisions refuses tables that would be one in the lake or to the registry, and
// sources that would share a slot. Catalogs and file systems differ in whether
// case counts, so it does not.
func (l *loader) collisions() {
	taken, ids, topics := map[string]lakeTable{}, map[string]*catalog.Table{}, map[string]*catalog.Table{}
	for _, t := range l.tables {
		if other, twice := ids[t.ID()]; twice {
			l.collision(t, fmt.Sprintf("the table is called %s as the one of %s is", t.ID(), other.File), "keep one of the two files; names with dots cannot be told apart here")
			continue
		}
		ids[t.ID()] = t
		source := l.placed[t.Source]
		if source == nil {
			continue
		}
		if c := source.Connector; c != nil {
			topic := c.Topic(t.Name)
			if other, twice := topics[t.Source+"\x00"+topic]; twice {
				l.collision(t, fmt.Sprintf("its topic would be %s, which is that of %s (%s)", topic, other.ID(), other.File), "leave one of the two out: Debezium writes what a topic's name cannot hold as an underscore")
				continue
			}
			topics[t.Source+"\x00"+topic] = t
		}
		for _, layer := range layersOf(t) {
			name := strings.Join(source.LakeName(t.Name, layer), ".")
			folded := strings.ToLower(strings.ToUpper(name))
			other, clash := taken[folded]
			if !clash {
				taken[folded] = lakeTable{name, layer, t}
				continue
			}
			hint := "give one of the sources namespaces of its own in source.yaml"
			if other.of.Source == t.Source {
				hint = "leave one of the two out, or keep fewer layers of one of them (scd)"
			}
			l.collision(t, fmt.Sprintf("its %s table would be %s in the lake, which is the %s table of %s (%s)", layer, name, other.layer, other.of.ID(), other.of.File), hint)
			break
		}
	}
	slots := map[string]*catalog.Source{}
	for _, s := range l.config.Sources {
		key := string(s.Connection) + "\x00" + s.Slot
		if other, twice := slots[key]; twice {
			d := l.docs[s.File]
			l.problems = append(l.problems, d.problem(catalog.CodeConfigCollision, d.value("slot"), fmt.Sprintf("the source shares connection and slot %s with %s", s.Slot, other.File), "give each source a slot of its own"))
		}
		slots[key] = s
	}
}

func (l *loader) collision(t *catalog.Table, message, hint string) {
	d := l.docs[t.File]
	l.problems = append(l.problems, d.problem(catalog.CodeConfigCollision, d.value("table"), message, hint))
}

func layersOf(t *catalog.Table) []catalog.Layer {
	out := []catalog.Layer{catalog.Bronze}
	if t.Current {
		out = append(out, catalog.Current)
	}
	if t.History {
		out = append(out, catalog.History)
	}
	return out
}
