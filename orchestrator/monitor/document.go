package monitor

import (
	"encoding/json"
	"math"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
)

// The JSON that commands and /api give. Names and meanings are a contract, described in
// docs/reference/cli-json.md: fields are added, never renamed. What is unknown is null.

// FleetDocument is the answer to "which tables, and how are they".
type FleetDocument struct {
	At      time.Time       `json:"at"` // the moment it describes
	Summary SummaryDocument `json:"summary"`
	Tables  []TableDocument `json:"tables"`
}

// SourcesDocument is the answer to "which sources, and how are they".
type SourcesDocument struct {
	At      time.Time        `json:"at"`
	Sources []SourceDocument `json:"sources"`
}

// SummaryDocument counts the fleet.
type SummaryDocument struct {
	Tables           int            `json:"tables"`
	WithinTier       int            `json:"withinTier"`
	ByHealth         map[Health]int `json:"byHealth"`
	ChangesPerSecond float64        `json:"changesPerSecond"`
	VerifiedThrough  *time.Time     `json:"verifiedThrough"` // the oldest of the verified tables
	Unverified       int            `json:"unverified"`
}

// TableDocument is one table.
type TableDocument struct {
	Source           string            `json:"source"`
	Schema           string            `json:"schema"`
	Name             string            `json:"name"`
	Owner            string            `json:"owner"`
	Tier             catalog.Tier      `json:"tier"`
	Health           Health            `json:"health"`
	State            catalog.State     `json:"state"`
	Since            *time.Time        `json:"since"`
	Reason           *ReasonDocument   `json:"reason"`
	FreshnessSeconds *float64          `json:"freshnessSeconds"`
	TierSeconds      float64           `json:"tierSeconds"`
	ChangesPerSecond float64           `json:"changesPerSecond"`
	Snapshot         *ProgressDocument `json:"snapshot"`
	Changes          int64             `json:"changes"`
	Layers           []LayerDocument   `json:"layers"`
	LastBatchAt      *time.Time        `json:"lastBatchAt"`
	NewestChangeAt   *time.Time        `json:"newestChangeAt"`
	VerifiedThrough  *time.Time        `json:"verifiedThrough"`
	SchemaVersion    int               `json:"schemaVersion"`
	ConfigVersion    int               `json:"configVersion"`
	File             string            `json:"file"`
	InFiles          bool              `json:"inFiles"`
}

// ReasonDocument says why a table is stopped.
type ReasonDocument struct {
	Code    catalog.Code `json:"code"`
	Message string       `json:"message"`
	Hint    string       `json:"hint"`
}

// ProgressDocument is a running snapshot.
type ProgressDocument struct {
	Rows          int64    `json:"rows"`
	Estimate      *int64   `json:"estimate"`
	RowsPerSecond float64  `json:"rowsPerSecond"`
	LeftSeconds   *float64 `json:"leftSeconds"`
}

// LayerDocument is one of a table's lake tables. Rows is as of the newest commit that was
// recorded.
type LayerDocument struct {
	Layer   catalog.Layer `json:"layer"`
	Table   string        `json:"table"`
	Rows    int64         `json:"rows"`
	Through *string       `json:"through"` // the place in the source's log up to which it is complete
}

// SourceDocument is one source.
type SourceDocument struct {
	Name      string             `json:"name"`
	Kind      catalog.SourceKind `json:"kind"`
	Capture   catalog.Capture    `json:"capture"`
	File      string             `json:"file"`
	Tables    int                `json:"tables"`
	Slot      *SlotDocument      `json:"slot"`
	Worker    *WorkerDocument    `json:"worker"`
	WALBudget *int64             `json:"walBudgetBytes"`
	OnBudget  catalog.OnBudget   `json:"onWalBudget,omitempty"`
	Connector *ConnectorDocument `json:"connector"` // null: nobody watches one
}

// ConnectorDocument is what was seen last of the source's connector.
type ConnectorDocument struct {
	Name   string                  `json:"name"`
	State  catalog.ConnectorState  `json:"state"`
	Reason *string                 `json:"reason"` // the gist of what has failed
	Tasks  []catalog.ConnectorTask `json:"tasks"`
	Since  time.Time               `json:"since"`
	SeenAt time.Time               `json:"seenAt"`
}

// SlotDocument is what the worker said last of the source's slot.
type SlotDocument struct {
	State         string    `json:"state"`
	Active        bool      `json:"active"`
	RetainedBytes int64     `json:"retainedBytes"`
	WAL           Level     `json:"wal"` // ok, near or over the budget
	HeldBy        *string   `json:"heldBy"`
	End           string    `json:"end"`
	Confirmed     string    `json:"confirmed"`
	Flushed       string    `json:"flushed"`
	At            time.Time `json:"at"`
}

// WorkerDocument is the process heard of last.
type WorkerDocument struct {
	ID        string    `json:"id"`
	PID       int       `json:"pid"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
	SeenAt    time.Time `json:"seenAt"`
	Alive     bool      `json:"alive"`
}

// Document is the report's tables in JSON.
func (r *Report) Document() FleetDocument {
	d := FleetDocument{At: r.Now, Tables: []TableDocument{}, Summary: SummaryDocument{
		Tables: r.Summary.Tables, WithinTier: r.Summary.Within, ByHealth: r.Summary.ByState,
		ChangesPerSecond: tenth(r.Summary.Rate), VerifiedThrough: known(r.Summary.Verified), Unverified: r.Summary.Unverified,
	}}
	for i := range r.Tables {
		d.Tables = append(d.Tables, r.Tables[i].Document())
	}
	return d
}

// SourcesDocument is the report's sources in JSON.
func (r *Report) SourcesDocument() SourcesDocument {
	d := SourcesDocument{At: r.Now, Sources: []SourceDocument{}}
	for i := range r.Sources {
		d.Sources = append(d.Sources, r.Sources[i].Document())
	}
	return d
}

// Document is the table in JSON.
func (t *Table) Document() TableDocument {
	d := TableDocument{
		Source: t.Source, Schema: t.Name.Schema, Name: t.Name.Name, Owner: t.Config.Owner, Tier: t.Config.Tier,
		Health: t.Health, State: t.State, Since: known(t.Since), TierSeconds: t.Freshness.Bound.Seconds(),
		ChangesPerSecond: tenth(t.Rate), Changes: t.Totals.Changes,
		LastBatchAt: known(t.Totals.LastBatchAt), NewestChangeAt: known(t.Totals.Newest), VerifiedThrough: known(t.VerifiedThrough),
		SchemaVersion: t.SchemaVersion, ConfigVersion: t.ConfigVersion, File: t.File, InFiles: t.InFiles,
	}
	if t.Fault != nil {
		d.Reason = &ReasonDocument{t.Fault.Code, t.Fault.Message, t.Fault.Hint}
	}
	if t.Freshness.Known {
		age := tenth(t.Freshness.Age.Seconds())
		d.FreshnessSeconds = &age
	}
	if p := t.Progress; p != nil {
		d.Snapshot = &ProgressDocument{Rows: p.Rows, RowsPerSecond: tenth(p.Rate)}
		if p.Estimate > 0 {
			d.Snapshot.Estimate = &p.Estimate
		}
		if p.Left > 0 {
			left := tenth(p.Left.Seconds())
			d.Snapshot.LeftSeconds = &left
		}
	}
	for _, l := range t.LayerList() {
		d.Layers = append(d.Layers, LayerDocument{l.Layer, l.Table, l.Rows, lsn(l.Through)})
	}
	return d
}

// Layer is one of a table's lake tables.
type Layer struct {
	Layer   catalog.Layer
	Table   string // its name in the lake, dotted
	Rows    int64
	Through catalog.LSN
}

// LayerList returns the layers that the table keeps, bronze first.
func (t *Table) LayerList() []Layer {
	out := []Layer{{catalog.Bronze, t.Config.BronzeTable, t.Totals.BronzeRows, t.BronzeThrough}}
	if t.Config.Current {
		out = append(out, Layer{catalog.Current, t.Config.CurrentTable, t.Totals.CurrentRows, t.CurrentThrough})
	}
	if t.Config.History {
		out = append(out, Layer{catalog.History, t.Config.HistoryTable, t.Totals.HistoryRows, t.HistoryThrough})
	}
	return out
}

// Document is the source in JSON.
func (s *Source) Document() SourceDocument {
	d := SourceDocument{Name: s.Name, Kind: s.Kind, Capture: s.Capture, File: s.File, Tables: s.Tables}
	if s.WALBudget > 0 {
		d.WALBudget, d.OnBudget = &s.WALBudget, s.OnBudget
	}
	if l := s.Log; l != nil {
		d.Slot = &SlotDocument{
			State: l.SlotState, Active: l.Active, RetainedBytes: l.Retained, WAL: s.WAL.Level,
			End: l.End.String(), Confirmed: l.Confirmed.String(), Flushed: l.Flushed.String(), At: l.UpdatedAt,
		}
		if l.HeldBy != "" {
			d.Slot.HeldBy = &l.HeldBy
		}
	}
	if c := s.Connector; c != nil {
		d.Connector = &ConnectorDocument{Name: c.Name, State: c.State, Tasks: c.Tasks, Since: c.Since.UTC(), SeenAt: c.SeenAt.UTC()}
		if why := c.Reason(); why != "" {
			d.Connector.Reason = &why
		}
	}
	if w := s.Worker; w != nil {
		d.Worker = &WorkerDocument{w.ID, w.PID, w.Version, w.StartedAt, w.SeenAt, s.Alive}
	}
	return d
}

// DetailDocument is one table with its past.
type DetailDocument struct {
	At      time.Time        `json:"at"`
	Table   TableDocument    `json:"table"`
	Config  any              `json:"config"`
	Columns []ColumnDocument `json:"columns"` // of the newest schema version
	Batches []BatchDocument  `json:"batches"` // the newest first
	Events  []EventDocument  `json:"events"`  // the newest first
}

// ColumnDocument is one column.
type ColumnDocument struct {
	Name       string             `json:"name"`
	SourceType string             `json:"sourceType"`
	LakeType   string             `json:"lakeType"`
	Nullable   bool               `json:"nullable"`
	Key        bool               `json:"key"`
	PII        catalog.Protection `json:"pii,omitempty"`
}

// BatchDocument is one batch.
type BatchDocument struct {
	At         time.Time        `json:"at"`
	ID         string           `json:"id"`
	From       string           `json:"from"`
	To         string           `json:"to"`
	Creates    int              `json:"creates"`
	Updates    int              `json:"updates"`
	Deletes    int              `json:"deletes"`
	Reads      int              `json:"reads"`
	Truncates  int              `json:"truncates"`
	Unfit      int              `json:"unfit"`
	Unfits     map[string]int   `json:"unfits,omitempty"`
	Bytes      int64            `json:"bytes"`
	Newest     *time.Time       `json:"newestChangeAt"`
	TookMillis map[string]int64 `json:"tookMillis"` // by layer
}

// SourceDetailDocument is one source with its past.
type SourceDetailDocument struct {
	At     time.Time       `json:"at"`
	Source SourceDocument  `json:"source"`
	Events []EventDocument `json:"events"` // the newest first
}

// EventDocument is one event of a table's or a source's life.
type EventDocument struct {
	At     time.Time          `json:"at"`
	Kind   registry.EventKind `json:"kind"`
	Detail json.RawMessage    `json:"detail"`
}

// Document is the detail in JSON.
func (d *Detail) Document() DetailDocument {
	out := DetailDocument{At: d.Now, Table: d.Table.Document(), Config: d.Table.Config, Columns: []ColumnDocument{}, Batches: []BatchDocument{}, Events: []EventDocument{}}
	if len(d.Schemas) > 0 {
		s := d.Schemas[0].Schema
		for i, c := range s.Columns {
			out.Columns = append(out.Columns, ColumnDocument{c.Name, c.Source.Name, c.Type.String(), c.Nullable, s.IsKey(i), d.Table.Config.PII[c.Name]})
		}
	}
	for _, b := range d.Batches {
		doc := BatchDocument{
			At: b.At, ID: b.ID, From: b.From.String(), To: b.To.String(), Creates: b.Creates, Updates: b.Updates, Deletes: b.Deletes,
			Reads: b.Reads, Truncates: b.Truncates, Unfit: b.Unfit, Unfits: b.Unfits, Bytes: b.Bytes, TookMillis: map[string]int64{},
		}
		if b.Newest != 0 {
			doc.Newest = known(time.UnixMicro(b.Newest))
		}
		for layer, c := range map[catalog.Layer]registry.Commit{catalog.Bronze: b.Bronze, catalog.Current: b.Current, catalog.History: b.History} {
			if c != (registry.Commit{}) {
				doc.TookMillis[string(layer)] = c.Took.Milliseconds()
			}
		}
		out.Batches = append(out.Batches, doc)
	}
	for _, e := range d.Events {
		out.Events = append(out.Events, EventDocument(e))
	}
	return out
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func lsn(l catalog.LSN) *string {
	if l == 0 {
		return nil
	}
	s := l.String()
	return &s
}

func tenth(f float64) float64 { return math.Round(f*10) / 10 }
