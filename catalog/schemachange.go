package catalog

import (
	"fmt"
	"strings"
)

// SchemaChangeKind is what a schema change is.
type SchemaChangeKind string

// The kinds. Those of a column have Column and its definitions set.
const (
	ColumnAdded          SchemaChangeKind = "column_added"
	ColumnDropped        SchemaChangeKind = "column_dropped"
	ColumnRenamed        SchemaChangeKind = "column_renamed"
	ColumnRetyped        SchemaChangeKind = "column_retyped"  // neither holds all values of the other, or the lake cannot follow by field id
	ColumnWidened        SchemaChangeKind = "column_widened"  // every value fits the new type, and the lake's column can follow
	ColumnNarrowed       SchemaChangeKind = "column_narrowed" // the old type holds every value of the new one
	DefaultChanged       SchemaChangeKind = "default_changed"
	NullabilityRelaxed   SchemaChangeKind = "nullability_relaxed"   // NULL is allowed now
	NullabilityTightened SchemaChangeKind = "nullability_tightened" // NULL is refused now
	GeneratedChanged     SchemaChangeKind = "generated_changed"     // how the column is computed, or that it is
	EnumLabelAdded       SchemaChangeKind = "enum_label_added"
	EnumLabelRemoved     SchemaChangeKind = "enum_label_removed"
	EnumLabelRenamed     SchemaChangeKind = "enum_label_renamed"
	KeyChanged           SchemaChangeKind = "key_changed"      // the primary key has other columns, or another order
	IdentityChanged      SchemaChangeKind = "identity_changed" // the replica identity
	TableRenamed         SchemaChangeKind = "table_renamed"
	TableDropped         SchemaChangeKind = "table_dropped"
	TableReplaced        SchemaChangeKind = "table_replaced" // dropped, and another made under its name
	PartitionAttached    SchemaChangeKind = "partition_attached"
	PartitionDetached    SchemaChangeKind = "partition_detached"
)

// SchemaChangeKinds lists all kinds.
func SchemaChangeKinds() []SchemaChangeKind {
	return []SchemaChangeKind{
		ColumnAdded, ColumnDropped, ColumnRenamed, ColumnRetyped, ColumnWidened, ColumnNarrowed,
		DefaultChanged, NullabilityRelaxed, NullabilityTightened, GeneratedChanged,
		EnumLabelAdded, EnumLabelRemoved, EnumLabelRenamed, KeyChanged, IdentityChanged,
		TableRenamed, TableDropped, TableReplaced, PartitionAttached, PartitionDetached,
	}
}

// LakeEffect says what a change of type asks of the lake's column.
type LakeEffect string

// The effects.
const (
	LakeSame     LakeEffect = "same"     // nothing: it has the right type already
	LakePromotes LakeEffect = "promotes" // a promotion that Iceberg allows, by field id
	LakeHolds    LakeEffect = "holds"    // nothing: it is wider, and holds every value
	LakeReplaces LakeEffect = "replaces" // another column: Iceberg has no promotion that leads there
)

// Rewrite says whether a change gives rows that are there other values, for which no
// row event is sent. Only reading the table again brings them.
type Rewrite string

// The answers.
const (
	RewriteNone    Rewrite = "none"
	RewriteValues  Rewrite = "values"
	RewriteUnknown Rewrite = "unknown" // nothing tells whether a USING expression changed values on the way
)

// SchemaChange is one difference between two definitions of a table. Which fields are
// set depends on the kind.
type SchemaChange struct {
	Kind SchemaChangeKind `json:"kind"`
	// Column is the column's name before, or after when it is new.
	Column string            `json:"column,omitempty"`
	Before *ColumnDefinition `json:"before,omitempty"`
	After  *ColumnDefinition `json:"after,omitempty"`
	// Key says that the column is of the configured key or of the primary key.
	Key bool `json:"key"`
	// Tracked says that the column is named in track_history_columns.
	Tracked bool `json:"tracked"`
	// PII is the protection that the configuration gives the column, under either name.
	PII Protection `json:"pii,omitempty"`
	// Lake, with the types before and after, is set for changes of type, and for a new
	// column of a name that the lake has already, of a column that was dropped. Diff sees
	// what went in the same step; who knows of one that went before says so here.
	Lake       LakeEffect `json:"lake,omitempty"`
	LakeBefore string     `json:"lake_before,omitempty"`
	LakeAfter  string     `json:"lake_after,omitempty"`
	Rewrite    Rewrite    `json:"rewrite"`
	// RenameOf names a dropped column that a new one may be under another name: the
	// capture gives columns no numbers, so that nothing tells.
	RenameOf string `json:"rename_of,omitempty"`
	// Clash is what the name of a new or renamed column is one with to some reader of the
	// lake: another column, or one of the lake's own.
	Clash string `json:"clash,omitempty"`
	// Content names what the values of a new column look like ("email", "iban"), as far
	// as whoever detected the change has looked. It never holds a value.
	Content []string `json:"content,omitempty"`

	Label    string `json:"label,omitempty"`     // of an enum: the one that came, went, or had this name
	NewLabel string `json:"new_label,omitempty"` // of a renamed one

	KeyBefore []string `json:"key_before,omitempty"`
	KeyAfter  []string `json:"key_after,omitempty"`

	IdentityBefore *Identity `json:"identity_before,omitempty"`
	IdentityAfter  *Identity `json:"identity_after,omitempty"`
	// CarriesKey says that old images still hold the configured key.
	CarriesKey bool `json:"carries_key,omitempty"`

	TableBefore *TableName `json:"table_before,omitempty"`
	TableAfter  *TableName `json:"table_after,omitempty"`

	Partition string `json:"partition,omitempty"`
}

// String tells the change in one line: "column amount: integer → bigint (lake: int → long)".
func (c *SchemaChange) String() string {
	switch c.Kind {
	case ColumnAdded:
		return fmt.Sprintf("column %s is new: %s", c.Column, c.After)
	case ColumnDropped:
		return fmt.Sprintf("column %s is gone", c.Column)
	case ColumnRenamed:
		return fmt.Sprintf("column %s is now called %s", c.Column, c.After.Name)
	case ColumnRetyped, ColumnWidened, ColumnNarrowed:
		return fmt.Sprintf("column %s: %s → %s (lake: %s)", c.Column, c.Before.Type.Name, c.After.Type.Name, c.lakeTypes())
	case DefaultChanged:
		return fmt.Sprintf("column %s: default %s → %s", c.Column, c.Before.Default, c.After.Default)
	case NullabilityRelaxed:
		return fmt.Sprintf("column %s: NULL is allowed now", c.Column)
	case NullabilityTightened:
		return fmt.Sprintf("column %s: NULL is refused now", c.Column)
	case GeneratedChanged:
		return fmt.Sprintf("column %s: generated %s → %s", c.Column, orNone(c.Before.Generated), orNone(c.After.Generated))
	case EnumLabelAdded:
		return fmt.Sprintf("column %s: label %q is new", c.Column, c.Label)
	case EnumLabelRemoved:
		return fmt.Sprintf("column %s: label %q is gone", c.Column, c.Label)
	case EnumLabelRenamed:
		return fmt.Sprintf("column %s: label %q is now %q", c.Column, c.Label, c.NewLabel)
	case KeyChanged:
		return fmt.Sprintf("primary key: %s → %s", columnList(c.KeyBefore), columnList(c.KeyAfter))
	case IdentityChanged:
		return fmt.Sprintf("replica identity: %s → %s", c.IdentityBefore, c.IdentityAfter)
	case TableRenamed:
		return fmt.Sprintf("table %s is now called %s", c.TableBefore, c.TableAfter)
	case TableDropped:
		return fmt.Sprintf("table %s is gone", c.TableBefore)
	case TableReplaced:
		return fmt.Sprintf("table %s was dropped and made anew", c.TableBefore)
	case PartitionAttached:
		return fmt.Sprintf("partition %s was attached", c.Partition)
	case PartitionDetached:
		return fmt.Sprintf("partition %s was detached", c.Partition)
	}
	return string(c.Kind)
}

func (c *SchemaChange) lakeTypes() string {
	if c.LakeBefore == c.LakeAfter {
		return c.LakeAfter + " as before"
	}
	return c.LakeBefore + " → " + c.LakeAfter
}

// String prints the column as SQL would declare it, without its name.
func (c *ColumnDefinition) String() string {
	s := c.Type.Name
	if !c.Nullable {
		s += " not null"
	}
	if c.Default != nil {
		s += " default " + c.Default.String()
	}
	if c.Generated != "" {
		s += " generated " + c.Generated
	}
	return s
}

// String prints the expression, "NULL" for none.
func (d *Default) String() string {
	if d == nil {
		return "NULL"
	}
	return d.Expression
}

func (i *Identity) String() string {
	if i.Mode == IdentityIndex {
		return "index on " + columnList(i.Columns)
	}
	return orNone(string(i.Mode))
}

func columnList(columns []string) string { return "(" + strings.Join(columns, ", ") + ")" }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
