package catalog

import "slices"

// Definition is a table as its source declares it at one place of the log. It says more
// than the Schema that rows are decoded by; schema changes are told from two of them.
type Definition struct {
	Name TableName `json:"name"`
	OID  uint32    `json:"oid,omitempty"` // 0 when it is not known
	// Columns are in the source's order.
	Columns []ColumnDefinition `json:"columns"`
	// Key names the columns of the primary key as declared, in its order; the configured
	// one may be another.
	Key      []string `json:"key,omitempty"`
	Identity Identity `json:"identity"`
	// Partitions are the leaves that hold the rows of a partitioned table.
	Partitions []Relation `json:"partitions,omitempty"`
}

// Column returns the named column, or nil.
func (d *Definition) Column(name string) *ColumnDefinition {
	if i := slices.IndexFunc(d.Columns, func(c ColumnDefinition) bool { return c.Name == name }); i >= 0 {
		return &d.Columns[i]
	}
	return nil
}

// ColumnDefinition is one column as the source declares it.
type ColumnDefinition struct {
	Name string `json:"name"`
	// Number is the attribute number, which survives a rename and is never given again;
	// 0 when the capture does not tell it.
	Number   int        `json:"number,omitempty"`
	Type     SourceType `json:"type"`
	Nullable bool       `json:"nullable"`
	Default  *Default   `json:"default,omitempty"` // nil: NULL
	// Generated is how the column is computed from others: stored, virtual, or "".
	Generated string `json:"generated,omitempty"`
	// Unsent says that the capture leaves the column out, so that the lake has none: most
	// generated columns, and those outside of a publication's list.
	Unsent bool `json:"unsent,omitempty"`
	// Labels are those of an enum or of an array of one, in order.
	Labels []EnumLabel `json:"labels,omitempty"`
}

// Default is what a row gets that does not say a column's value.
type Default struct {
	Expression string     `json:"expression"` // as the source prints it; may be shortened
	Volatility Volatility `json:"volatility"`
	// Missing is the value that rows from before the column was added show, as the source
	// prints it, when it keeps one for them all. A later change of the default leaves it.
	Missing *string `json:"missing,omitempty"`
}

// Volatility says whether an expression's value is the same from row to row.
type Volatility string

// The volatilities.
const (
	Constant Volatility = "constant" // always the same
	Stable   Volatility = "stable"   // the same within one statement, such as now()
	Volatile Volatility = "volatile" // another one for each row: sequences, identity columns, random()
)

// EnumLabel is one label of an enum. OID survives a rename; 0 when it is not known.
type EnumLabel struct {
	OID  uint32 `json:"oid,omitempty"`
	Name string `json:"name"`
}

// Identity is a table's replica identity: what old images of its rows carry.
type Identity struct {
	Mode IdentityMode `json:"mode,omitempty"` // "" when it is not known
	// Columns are those that every old image carries, whatever the mode; all of them
	// under IdentityFull.
	Columns []string `json:"columns,omitempty"`
}

// IdentityMode is the setting of a replica identity.
type IdentityMode string

// The modes, as Postgres calls them.
const (
	IdentityDefault IdentityMode = "default" // the primary key, if there is one
	IdentityIndex   IdentityMode = "index"
	IdentityFull    IdentityMode = "full"
	IdentityNothing IdentityMode = "nothing"
)

// Carries reports whether old images hold all of the columns.
func (i Identity) Carries(columns []string) bool {
	if i.Mode == IdentityFull {
		return true
	}
	return !slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(i.Columns, c) })
}
