package policies

import (
	"slices"
	"strings"

	"github.com/lakeweir/lakeweir/catalog"
)

// InputKind says what a policy is asked.
type InputKind string

// The kinds.
const (
	SchemaChange InputKind = "schema_change" // what becomes of a change of the table's schema
	TableConfig  InputKind = "config"        // whether the table's configuration is as it should be
)

// Input is what a rule sees as input.
type Input struct {
	// What is asked: schema_change or config.
	Kind InputKind `json:"kind" jsonschema:"enum=schema_change,enum=config"`
	// The table's source.
	Source Source `json:"source"`
	// The table as it is configured, defaults filled in.
	Table Table `json:"table"`
	// The change that is judged. Only for schema_change.
	Change *Change `json:"change,omitempty"`
	// All changes that take effect at the same place of the log, the judged one too. Only for schema_change.
	Changes []Change `json:"changes,omitempty"`
}

// Source is the source of the table.
type Source struct {
	// Its name: that of its folder.
	Name string `json:"name"`
	// The kind of database: postgres.
	Kind string `json:"kind"`
	// How changes are read: direct or debezium.
	Capture string `json:"capture"`
}

// Table is a configured table, under the keys of its file.
type Table struct {
	// source/schema.name.
	ID string `json:"id"`
	// The schema at the source.
	Schema string `json:"schema"`
	// The table's name at the source.
	Name string `json:"name"`
	// Who is asked when the table breaks.
	Owner string `json:"owner"`
	// The configured key's columns, in order; empty for a table without a key.
	PrimaryKey []string `json:"primary_key"`
	// The silver layers that are kept: 1 current state, 2 history.
	SCD []int `json:"scd"`
	// How fresh the table is promised to be.
	FreshnessTier string `json:"freshness_tier"`
	// The columns named as the only ones that make a version in history; empty when none are named.
	TrackHistoryColumns []string `json:"track_history_columns"`
	// The columns named as making no version in history.
	TrackHistoryExceptColumns []string `json:"track_history_except_columns"`
	// The classified columns, and how each is protected: tokenize or redact.
	PII map[string]string `json:"pii"`
	// Whether deleted rows stay in silver, marked.
	SoftDelete bool `json:"soft_delete"`
	// Whether a TRUNCATE is followed.
	ApplyTruncates bool `json:"apply_truncates"`
}

// Change is one schema change.
type Change struct {
	// What it is, such as column_added.
	Kind string `json:"kind"`
	// The change in one line.
	Text string `json:"text"`
	// The column's name before, or after when it is new. Only for changes of a column, as before, after, key, tracked and pii.
	Column string `json:"column,omitempty"`
	// The column before; absent when it is new.
	Before *Column `json:"before,omitempty"`
	// The column after; absent when it is gone.
	After *Column `json:"after,omitempty"`
	// Whether the column is part of the configured key or of the primary key.
	Key bool `json:"key"`
	// Whether the column is named in track_history_columns.
	Tracked bool `json:"tracked"`
	// How the configuration protects the column, under the name before or after; "" when it does not.
	PII string `json:"pii"`
	// What a change of type asks of the lake: same (nothing), promotes (a promotion that Iceberg makes by field id), holds (nothing: the lake's type is wider) or replaces (another column); for a new column, of a kept one of its name. Else "".
	Lake string `json:"lake"`
	// The lake's type before a change of type.
	LakeBefore string `json:"lake_before,omitempty"`
	// The lake's type that the new one would have.
	LakeAfter string `json:"lake_after,omitempty"`
	// Whether rows that are there get other values without an event: none, values, or unknown when nothing tells whether a USING expression changed values on the way.
	Rewrite string `json:"rewrite"`
	// The dropped column that a new one may be under another name, where the capture gives columns no numbers; else "".
	RenameOf string `json:"rename_of"`
	// What the name of a new or renamed column is one with to some reader of the lake: another column, or one of the lake's own; else "".
	Clash string `json:"clash"`
	// What the values of a new column look like, such as email, as far as they were looked at.
	Content []string `json:"content"`
	// The enum's label that came, went or had this name.
	Label string `json:"label,omitempty"`
	// The renamed label's new name.
	NewLabel string `json:"new_label,omitempty"`
	// The primary key's columns before; empty but for key_changed.
	KeyBefore []string `json:"key_before"`
	// The primary key's columns after; empty but for key_changed.
	KeyAfter []string `json:"key_after"`
	// The replica identity before: default, index, full or nothing. Only for identity_changed.
	IdentityBefore string `json:"identity_before,omitempty"`
	// The replica identity after.
	IdentityAfter string `json:"identity_after,omitempty"`
	// Whether old images of rows still hold the configured key. For identity_changed and key_changed.
	CarriesKey bool `json:"carries_key"`
	// The table's name before, as schema.name. For changes of the table itself.
	TableBefore string `json:"table_before,omitempty"`
	// The table's name after.
	TableAfter string `json:"table_after,omitempty"`
	// The partition that came or went.
	Partition string `json:"partition,omitempty"`
}

// Column is a column as the source declares it.
type Column struct {
	// Its name.
	Name string `json:"name"`
	// The number that survives a rename; 0 when the capture does not tell it.
	Number int `json:"number"`
	// The type as the source prints it: numeric(12,2).
	Type string `json:"type"`
	// The type underneath, without modifiers and domains: numeric, int8, text, bool, enum, array.
	Base string `json:"base"`
	// Whether NULL is allowed.
	Nullable bool `json:"nullable"`
	// The default's expression; "" when there is none.
	Default string `json:"default"`
	// Whether the default is the same from row to row: constant, stable or volatile; "" when there is none.
	DefaultVolatility string `json:"default_volatility"`
	// How the column is generated: stored, virtual, or "".
	Generated string `json:"generated"`
	// Whether the capture sends the column; the lake has no column that is not sent.
	Sent bool `json:"sent"`
	// The labels of an enum, in order.
	Labels []string `json:"labels"`
}

// ForConfig is the input that judges a table's configuration.
func ForConfig(source *catalog.Source, table *catalog.Table) *Input {
	return &Input{Kind: TableConfig, Source: sourceOf(source), Table: tableOf(table)}
}

// ForChanges are the inputs that judge changes that take effect together, one for each.
func ForChanges(source *catalog.Source, table *catalog.Table, changes []catalog.SchemaChange) []*Input {
	all := make([]Change, len(changes))
	for i := range changes {
		all[i] = changeOf(&changes[i])
	}
	inputs := make([]*Input, len(changes))
	for i := range all {
		inputs[i] = &Input{Kind: SchemaChange, Source: sourceOf(source), Table: tableOf(table), Change: &all[i], Changes: all}
	}
	return inputs
}

func sourceOf(s *catalog.Source) Source {
	return Source{Name: s.Name, Kind: string(s.Kind), Capture: string(s.Capture)}
}

func tableOf(t *catalog.Table) Table {
	out := Table{
		ID: t.ID(), Schema: t.Name.Schema, Name: t.Name.Name, Owner: t.Owner, PrimaryKey: list(t.PrimaryKey), SCD: []int{}, FreshnessTier: string(t.Tier),
		TrackHistoryColumns: list(t.TrackColumns), TrackHistoryExceptColumns: list(t.TrackExcept), PII: map[string]string{},
		SoftDelete: t.SoftDelete, ApplyTruncates: t.ApplyTruncates,
	}
	if t.Current {
		out.SCD = append(out.SCD, 1)
	}
	if t.History {
		out.SCD = append(out.SCD, 2)
	}
	for column, how := range t.PII {
		out.PII[column] = string(how)
	}
	return out
}

func changeOf(c *catalog.SchemaChange) Change {
	out := Change{
		Kind: string(c.Kind), Text: c.String(), Column: c.Column, Before: columnOf(c.Before), After: columnOf(c.After), Key: c.Key, Tracked: c.Tracked,
		PII: string(c.PII), Lake: string(c.Lake), LakeBefore: c.LakeBefore, LakeAfter: c.LakeAfter, Rewrite: string(c.Rewrite), RenameOf: c.RenameOf, Clash: c.Clash,
		Content: list(c.Content), Label: c.Label, NewLabel: c.NewLabel, KeyBefore: list(c.KeyBefore), KeyAfter: list(c.KeyAfter), CarriesKey: c.CarriesKey, Partition: c.Partition,
	}
	if c.IdentityBefore != nil && c.IdentityAfter != nil {
		out.IdentityBefore, out.IdentityAfter = string(c.IdentityBefore.Mode), string(c.IdentityAfter.Mode)
	}
	if c.TableBefore != nil {
		out.TableBefore = c.TableBefore.String()
	}
	if c.TableAfter != nil {
		out.TableAfter = c.TableAfter.String()
	}
	return out
}

func columnOf(c *catalog.ColumnDefinition) *Column {
	if c == nil {
		return nil
	}
	out := &Column{
		Name: c.Name, Number: c.Number, Type: c.Type.Name, Base: c.Type.Base, Nullable: c.Nullable, Generated: c.Generated, Sent: !c.Unsent, Labels: []string{},
	}
	if c.Default != nil {
		out.Default, out.DefaultVolatility = c.Default.Expression, string(c.Default.Volatility)
	}
	for _, l := range c.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	return out
}

// list makes an absent list an empty one: rules count and iterate.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return slices.Clone(s)
}

// ReadInputs reads inputs of schema changes from JSON, strictly: one, or a list of those
// that were judged together.
func ReadInputs(text []byte) ([]*Input, error) {
	var list []*Input
	if strings.HasPrefix(strings.TrimSpace(string(text)), "[") {
		if e := (placedAnswer{value: text}).decode(&list); e != nil {
			return nil, badInput("%s", strings.Replace(e.Message, "an answer", "the input", 1))
		}
	} else {
		var in Input
		if e := (placedAnswer{value: text}).decode(&in); e != nil {
			return nil, badInput("%s", strings.Replace(e.Message, "an answer", "the input", 1))
		}
		list = []*Input{&in}
	}
	if len(list) == 0 {
		return nil, badInput("the list of inputs is empty")
	}
	for _, in := range list {
		switch {
		case in == nil || in.Kind == "":
			return nil, badInput("the input says no kind")
		case in.Kind != SchemaChange:
			return nil, badInput("the input's kind is %q, not schema_change", in.Kind)
		case in.Change == nil:
			return nil, badInput("the input has no change")
		}
	}
	return list, nil
}

func badInput(format string, args ...any) error {
	return catalog.Invalidf(catalog.CodePolicyInput, "", "lakeweir policy schema prints its form", format, args...)
}
