package registry

import (
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Fleet is everything the registry knows of all sources and tables, at one moment.
type Fleet struct {
	Now     time.Time // the registry's clock: all ages are against it
	Sources []SourceView
	Tables  []TableView // by source, then name
}

// SourceView is what is known of one source. A part that nobody has reported is nil.
type SourceView struct {
	Name      string
	Kind      catalog.SourceKind
	Capture   catalog.Capture
	File      string
	WALBudget int64 // bytes; 0 when there is none
	// NearBudget is the percentage of WALBudget at which it is near, and OnBudget what
	// happens at it; zero values when the registry was told before they existed.
	NearBudget int
	OnBudget   catalog.OnBudget
	Log        *SourceLog
	Slot       *Slot
	Worker     *Worker // the one heard of last
	Connector  *ConnectorView
}

// SourceLog is what the worker said last of the source's log.
type SourceLog struct {
	SourceStatus
	Flushed   catalog.LSN // everything before it is in bronze
	UpdatedAt time.Time
}

// TableView is what is known of one table.
type TableView struct {
	Source        string
	Name          catalog.TableName
	Config        TableConfig
	ConfigVersion int
	SchemaVersion int // 0 when no columns were seen yet
	File          string
	InFiles       bool // false: no file names it any more
	State         catalog.State
	Since         time.Time // when the state began; zero when nobody reported one
	Fault         *Fault    // why it is stopped, else nil
	Snapshot      *catalog.SnapshotProgress
	// BronzeThrough, CurrentThrough and HistoryThrough are as in TableStatus.
	BronzeThrough, CurrentThrough, HistoryThrough catalog.LSN
	FreshAt                                       time.Time // by the source's clock; zero when unknown
	HeardAt                                       time.Time // when the status was last written; zero when never
	Totals                                        Totals
	Samples                                       []Sample      // of the last ten minutes, oldest first
	Verified                                      *Verification // the newest comparison, or nil
	// VerifiedThrough is the time of the newest comparison that found no difference;
	// zero when there is none.
	VerifiedThrough time.Time
}

// ID names the table across sources: "shop/public.orders".
func (v *TableView) ID() string { return v.Source + "/" + v.Name.String() }

// Fault is why a table is stopped.
type Fault struct {
	Code    catalog.Code
	Message string
	Hint    string
}

// Totals are over all batches that were recorded. A batch whose record was lost with its
// worker is missing in Changes; the rows are those of the newest batch recorded.
type Totals struct {
	Changes     int64
	BronzeRows  int64
	CurrentRows int64
	HistoryRows int64
	LastBatchAt time.Time // zero when there was none
	Newest      time.Time // commit time of the newest change; zero when there was none
}

// Sample is one ten-second stretch of a table's life.
type Sample struct {
	At      time.Time     // when it began
	Age     time.Duration // the worst age reported in it; negative when none was
	Changes int64         // not rows that a snapshot read
}

// SampleEvery is how long a sample is.
const SampleEvery = sampleEvery

// Verification is the outcome of one comparison.
type Verification struct {
	At         time.Time
	SourceRows int64
	LakeRows   int64
	Differing  int64
}

// Detail is one table with its past.
type Detail struct {
	Now     time.Time
	Source  SourceView
	Table   TableView
	Batches []BatchRecord // the newest 50, newest first
	Events  []Event       // the newest 100, newest first
	Schemas []SchemaView  // all versions, newest first
	Samples []Sample      // of the last hour, oldest first
}
