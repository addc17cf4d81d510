package postgres

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
)

// definition is a table as the source declared it at some place, with what rows of the
// stream are matched by.
type definition struct {
	*catalog.Definition

	wire []wireColumn // of each column, as relation messages describe it
}

// ddlEvent is one entry of the DDL log.
type ddlEvent struct {
	kind       string // table, rewrite, drop or failed
	oid        uint32
	name       catalog.TableName // of a dropped table
	command    string            // of failed and table
	plain      bool              // one ALTER TABLE without a USING
	definition *definition       // of kind table
}

// The kinds of entries.
const (
	ddlTable   = "table"   // a table was altered, and is now so
	ddlRewrite = "rewrite" // its rows were written anew
	ddlDrop    = "drop"
	ddlFailed  = "failed" // something was altered, and could not be described
)

// ddlDoc is the JSON form of an entry; definitions.sql and install.sql write it.
type ddlDoc struct {
	V       int         `json:"v"`
	Event   string      `json:"event"`
	OID     uint32      `json:"oid"`
	Schema  string      `json:"schema"`
	Name    string      `json:"name"`
	Command string      `json:"command"`
	Plain   bool        `json:"plain"`
	Ident   string      `json:"identity"`
	Key     []string    `json:"key"`
	Carries []string    `json:"carries"`
	Columns []ddlColumn `json:"columns"`
	Types   []ddlType   `json:"types"`
}

type ddlColumn struct {
	N         int     `json:"n"`
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	OID       uint32  `json:"oid"`
	Mod       int32   `json:"mod"`
	Dims      int     `json:"dims"`
	NotNull   bool    `json:"notnull"`
	Generated string  `json:"generated"`
	Identity  string  `json:"identity"`
	Default   *string `json:"default"`
	Varies    string  `json:"varies"`
	Missing   *string `json:"missing"`
}

type ddlType struct {
	OID    uint32      `json:"oid"`
	Base   uint32      `json:"base"`
	Elem   uint32      `json:"elem"`
	Mod    int32       `json:"mod"`
	Name   string      `json:"name"`
	Schema string      `json:"schema"`
	Kind   string      `json:"kind"`
	Dims   int         `json:"dims"`
	Labels []enumLabel `json:"labels"`
}

type enumLabel struct {
	OID  uint32 `json:"oid"`
	Name string `json:"name"`
}

// errDDLVersion is an entry of another version of the log.
var errDDLVersion = errors.New("an entry of a version that this program does not read")

// maxColumns is the most columns that Postgres allows a table.
const maxColumns = 1600

// parseDDL reads an entry. Anybody may have written it: what it says of a table is
// checked against the relation message that comes with the table's rows.
func parseDDL(data []byte) (ddlEvent, error) {
	var doc ddlDoc
	if err := json.Unmarshal(data, &doc); err != nil {
		return ddlEvent{}, fmt.Errorf("no JSON of the DDL log: %w", err)
	}
	if doc.V != ddlLogVersion {
		return ddlEvent{}, errDDLVersion
	}
	e := ddlEvent{kind: doc.Event, oid: doc.OID, name: catalog.TableName{Schema: doc.Schema, Name: doc.Name}, command: doc.Command, plain: doc.Plain}
	switch doc.Event {
	case ddlTable:
		d, err := doc.definition()
		if err != nil {
			return ddlEvent{}, err
		}
		e.definition = d
	case ddlRewrite, ddlDrop:
	case ddlFailed:
		return e, nil
	default:
		return ddlEvent{}, fmt.Errorf("an entry of unknown kind %q", doc.Event)
	}
	if e.oid == 0 {
		return ddlEvent{}, errors.New("an entry of no table")
	}
	return e, nil
}

func (doc *ddlDoc) definition() (*definition, error) {
	if len(doc.Columns) > maxColumns {
		return nil, fmt.Errorf("a table of %d columns", len(doc.Columns))
	}
	types, labels := make(map[uint32]typeRow, len(doc.Types)), map[uint32][]catalog.EnumLabel{}
	for _, t := range doc.Types {
		types[t.OID] = typeRow{oid: t.OID, base: t.Base, elem: t.Elem, baseModifier: t.Mod, dims: t.Dims, name: t.Name, schema: t.Schema, kind: t.Kind}
		for _, l := range t.Labels {
			labels[t.OID] = append(labels[t.OID], catalog.EnumLabel{OID: l.OID, Name: l.Name})
		}
	}
	d := &definition{Definition: &catalog.Definition{
		Name: catalog.TableName{Schema: doc.Schema, Name: doc.Name}, OID: doc.OID, Key: doc.Key,
		Identity: catalog.Identity{Mode: identityMode(doc.Ident), Columns: doc.Carries},
	}}
	numbers := map[int]bool{}
	for _, c := range doc.Columns {
		if c.N < 1 || c.N > maxColumns || numbers[c.N] || c.Name == "" {
			return nil, errors.New("a column without a name or a number of its own")
		}
		numbers[c.N] = true
		source := sourceType(types, c.OID, c.Mod, 0)
		source.Name, source.Dims = c.Type, max(source.Dims, c.Dims)
		d.Columns = append(d.Columns, catalog.ColumnDefinition{
			Name: c.Name, Number: c.N, Type: source, Nullable: !c.NotNull, Default: c.defaultValue(),
			Generated: generatedWord(c.Generated), Labels: labelsOf(types, labels, c.OID, 0),
		})
		d.wire = append(d.wire, wireColumn{name: c.Name, oid: c.OID, modifier: c.Mod})
	}
	return d, nil
}

// defaultValue is what a row gets that does not say the column's value.
func (c *ddlColumn) defaultValue() *catalog.Default {
	switch {
	case c.Generated != "":
		return nil // its expression is no default
	case c.Identity != "":
		return &catalog.Default{Expression: identityExpression(c.Identity), Volatility: catalog.Volatile}
	case c.Default == nil && c.Missing == nil:
		return nil
	}
	d := &catalog.Default{Volatility: catalog.Constant, Missing: c.Missing}
	d.Expression = "NULL"
	if c.Default != nil {
		d.Expression = *c.Default
	}
	switch c.Varies {
	case "v":
		d.Volatility = catalog.Volatile
	case "s":
		d.Volatility = catalog.Stable
	}
	return d
}

func identityExpression(kind string) string {
	if kind == "a" {
		return "generated always as identity"
	}
	return "generated by default as identity"
}

func generatedWord(kind string) string {
	switch kind {
	case "s":
		return "stored"
	case "v":
		return "virtual"
	}
	return ""
}

func identityMode(char string) catalog.IdentityMode {
	switch char {
	case "d":
		return catalog.IdentityDefault
	case "i":
		return catalog.IdentityIndex
	case "f":
		return catalog.IdentityFull
	case "n":
		return catalog.IdentityNothing
	}
	return ""
}

// labelsOf finds the labels of an enum, looking through domains and arrays.
func labelsOf(types map[uint32]typeRow, labels map[uint32][]catalog.EnumLabel, oid uint32, depth int) []catalog.EnumLabel {
	t, ok := types[oid]
	switch {
	case !ok || depth > 8:
		return nil
	case t.kind == "e":
		return labels[oid]
	case t.kind == "d":
		return labelsOf(types, labels, t.base, depth+1)
	case t.elem != 0:
		return labelsOf(types, labels, t.elem, depth+1)
	}
	return nil
}

// describes reports whether the definition is what a relation message describes: each
// column of the message is one of those that are sent, in order, under its name and type.
func (d *definition) describes(columns []wireColumn) bool {
	n := 0
	for i := range d.Columns {
		if d.Columns[i].Unsent {
			continue
		}
		if n == len(columns) || !d.wire[i].sameType(columns[n]) {
			return false
		}
		n++
	}
	return n == len(columns)
}

// clone copies the definition as far as it is changed by those who hold it.
func (d *definition) clone() *definition {
	out := *d.Definition
	out.Columns = slices.Clone(d.Columns)
	return &definition{Definition: &out, wire: d.wire}
}

// schema is the columns that are sent, with the configured key as far as it is among
// them.
func (d *definition) schema(table *catalog.Table) *catalog.Schema {
	out := &catalog.Schema{Definition: d.Definition}
	for i := range d.Columns {
		c := &d.Columns[i]
		if !c.Unsent {
			out.Columns = append(out.Columns, catalog.Column{Name: c.Name, Number: c.Number, Source: c.Type, Type: typemap.Postgres(c.Type), Nullable: c.Nullable})
		}
	}
	for _, name := range table.PrimaryKey {
		if i := out.Index(name); i >= 0 {
			out.Key = append(out.Key, i)
		}
	}
	return out
}

// wireOf makes up what relation messages say of columns whose definition was stored. The
// modifier of a domain's column is not in it.
func wireOf(d *catalog.Definition) []wireColumn {
	out := make([]wireColumn, len(d.Columns))
	for i, c := range d.Columns {
		out[i] = wireColumn{name: c.Name, oid: c.Type.OID, modifier: c.Type.Modifier}
	}
	return out
}
