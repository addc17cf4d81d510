package pipeline

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// Source reads one source's changes. Start comes first, then Next, again and
// again from one goroutine; Confirm, Drop and Status may be called from others
// meanwhile. Close comes last.
type Source interface {
	// Start begins reading, for each table after what bronze holds of it. It
	// returns one fault for each table that cannot start, and an error when the
	// source as a whole cannot be read. Call it once, before Next.
	Start(ctx context.Context, tables []Resume) ([]Fault, error)
	// Next blocks until there is something to hand over: at least one change,
	// fault or finished chunk, or progress worth telling, at the latest about
	// half a second after the call. Changes of one table come in order over all
	// slices, save those that say they are late. The slice belongs to the caller.
	//
	// Where a source reads in another order than that of keys (a topic whose ranges
	// were sent again, several partitions, a read that counts at an older place), its
	// own cursor tells it what it has read, and it marks as Late each change that
	// stands before one it handed over earlier for the same keys. Whether such a
	// change is new is for bronze to tell, by its position. What is at or below
	// bronze's cursor and not marked was sent before, and changes nothing.
	Next(ctx context.Context) (Slice, error)
	// Confirm tells the source that everything up to the position is saved, so
	// that it may forget it. It may be repeated; a lower one is ignored.
	Confirm(ctx context.Context, through catalog.LSN) error
	// Drop ends the reading of a table: no change of it is handed over any more.
	Drop(table string)
	// Status says where the source's log stands. It may do I/O.
	Status(ctx context.Context) (SourceStatus, error)
	Close(ctx context.Context) error
}

// Rereader is a Source that can read single rows again:
//
//	if r, ok := source.(pipeline.Rereader); ok { r.Reread(q) }
//
// A row that is found comes as a Read at the place of the log where it was read; a
// key that the source does not have comes as a Delete at that place (see
// change.Change.WasRead). A key that a transaction unseen by the reading has changed
// is left to that change, so that nothing that committed later is undone.
type Rereader interface {
	// Reread asks for rows and returns at once. A later slice has a batch that names
	// the request in its Rereads, when everything asked for is in it or in one before
	// it. What is not answered before Close is forgotten: ask the next source again.
	// Safe to call while Next runs.
	Reread(q Reread)
}

// OffsetKeeper is an optional ability of a Source that reads topics: it is told how far
// bronze holds each of them.
//
//	if k, ok := source.(pipeline.OffsetKeeper); ok { k.Saved(table, offsets) }
type OffsetKeeper interface {
	// Saved returns at once. Safe to call while Next runs.
	Saved(table string, offsets *catalog.TopicOffsets)
}

// Reread is a request to read rows of a table again, by key.
type Reread struct {
	ID    int64
	Table string // catalog.TableName.String()
	// Keys are the texts of the key columns, in key order, as the source prints them.
	Keys [][]string
	// Masked says that the texts of masked columns are those that the lake shows: what
	// stands behind them is not known, and the source finds the rows by masking.
	Masked bool
	// Remake says that current and history may be wrong: once the rows are read, both
	// are made anew from bronze for these keys. Batches that hold such rows say so.
	Remake bool
}

// ErrNoReread is returned by Rereads.Request when the rows cannot be read again: nothing is
// asked for then, and what they lack stays marked.
var ErrNoReread = errors.New("rows of the table cannot be read again by the keys that the lake shows")

// Rereads keeps requests until they are done. Safe for concurrent use.
type Rereads interface {
	// Request asks for rows again whose keys are given as the lake shows them, and
	// returns the request's number. It is durable when it returns. It may fail with
	// ErrNoReread.
	Request(ctx context.Context, table *catalog.Table, keys [][]string) (int64, error)
	// Pending returns the requests that are not done, the oldest first; not
	// necessarily all at once.
	Pending(ctx context.Context) ([]Reread, error)
	// Done marks requests whose answers bronze holds. It may be repeated.
	Done(ctx context.Context, ids []int64) error
}

// Resume says where a source goes on with a table.
type Resume struct {
	Table *catalog.Table
	// Cursor is bronze's; zero for a table that was never read.
	Cursor catalog.Cursor
	// Snapshot is bronze's; nil for a table that was never read.
	Snapshot *catalog.SnapshotProgress
	// Offsets is bronze's; nil for a table that was never read from a topic.
	Offsets *catalog.TopicOffsets
	// Schema is the newest the registry knows, or nil. A source whose table has
	// another shape faults the table with schema.changed; one that parks goes on with
	// this one, and tells of the other where the log comes to it.
	Schema *catalog.Schema
	// Parked says that the table is parking: what is up to there is stored, and what
	// follows is kept as further runs. Nil: its changes are read.
	Parked *ParkedThrough
}

// ParkedThrough is how far a table's parked changes are stored.
type ParkedThrough struct {
	catalog.Place

	Seq uint64 // of the newest run that is stored; 0 when none is
}

// ParkedRun is a stretch of a parking table's changes, as they came.
type ParkedRun struct {
	Table string // catalog.TableName.String()
	Seq   uint64 // from 1, without holes, for each parking
	// Data is the source's own encoding, which says itself all that it takes to read
	// it. It holds values in clear.
	Data   []byte
	Events int // changes in it; 0 when it only tells how the table was altered
	// From and To are the places of its first and its last change.
	From, To catalog.Place
}

// Parker is an optional ability of a Source that can keep what comes for a table that
// cannot go on:
//
//	if p, ok := source.(pipeline.Parker); ok { p.Replay(table, run, schema, skip) }
//
// A fault of such a table says that it Parks. Everything before the first change that
// was not handed over comes as usual; from that one on the table's changes come as
// runs, in order, until a replay has brought it up to date. Whoever stores runs goes on
// with Resume.Parked only once bronze holds what came before the fault, and forgets a run
// only once bronze holds its changes; else a crash would lose what is between.
type Parker interface {
	// Replay gives a run back, and returns at once; each run once, in the order of
	// their numbers. The zero run, which comes first, begins a replay, under the schema
	// that was decided; with a run the schema is the same. The source decodes the run
	// and hands over its batches in later slices, then says so in Slice.Replayed; then
	// the next may be given. What comes for the table meanwhile is parked as further
	// runs, which are to be given back as well. Once it has had all that it handed
	// over, the source decodes the small rest that it has still, goes on live, and says
	// so in Slice.Replayed.
	//
	// A fault in a replay parks again: the run in which it is and those after it count
	// as not replayed. A replay may begin with any run whose predecessors bronze holds;
	// what is decoded twice, or stands at or below bronze's cursor, is not handed over
	// again. skip are the places of changes to be passed by. Safe to call while Next
	// runs.
	Replay(table string, run ParkedRun, schema *catalog.Schema, skip []catalog.Place)
}

// Replayed says how far the replay of a table has come.
type Replayed struct {
	Table string
	Seq   uint64 // of the newest run of which everything was handed over
	Live  bool   // everything that came was, and the table is read as any other
}

// Slice is a stretch of a source's log.
type Slice struct {
	Batches []*change.Batch // at most one per table, unless its schema changed within
	Faults  []Fault
	// Through is how far the source has read: every transaction that committed
	// before it has been handed over, in this slice or an earlier one, save those
	// of tables with a fault. What a snapshot window still holds back has not been
	// handed over.
	Through catalog.LSN
	// ReadAt is the source's clock when Through was its end of log, or zero when
	// the source is known to be further by now.
	ReadAt time.Time
	// Replayed is how far replays have come with the slice's batches. Of one table, what
	// a slice holds happened in this order: its batch, what was replayed, its fault, its
	// parked runs.
	Replayed []Replayed
	// Parked are runs of parking tables, in order; of a source that is asked to park.
	// What is in them counts as handed over.
	Parked []ParkedRun
}

// Fault is why one table cannot go on; the others do.
type Fault struct {
	Table string // catalog.TableName.String()
	State catalog.State
	Err   *catalog.Error
	// From is the commit of the first change of the table that was not handed over
	// because of the fault, so that the source keeps it; zero when the fault came
	// before any.
	From catalog.LSN
	// Keep has the source keep what follows also in a gap: the lake may be put right
	// again, and then nothing is missing.
	Keep bool
	// Change is why, when the table was altered at its source; else nil.
	Change *catalog.Alteration
	// Parks says that what follows of the table comes as runs; see Parker. The fault
	// comes before the first of them, and the source is not to Drop the table.
	Parks bool
}

// SourceStatus is where a source's log stands.
type SourceStatus struct {
	End       catalog.LSN // the end of the log now
	Confirmed catalog.LSN // what the slot may forget
	Retained  int64       // bytes the slot holds back
	SlotState string      // as the server names it: reserved, extended, unreserved, lost; missing when there is none
	Active    bool
	// Stage and HeldBy are the pipeline's judgement, not the source's: how near
	// Retained is to the budget, and what makes the slot retain, in words.
	Stage  catalog.BudgetStage
	HeldBy string
}

// Lake opens the lake tables of a source. Safe for concurrent use.
type Lake interface {
	// BronzeState reads what bronze says of a table without needing its schema;
	// zero when bronze does not exist yet. It fails as Open does.
	BronzeState(ctx context.Context, table *catalog.Table) (LayerState, error)
	// Open creates what is absent and loads what is there. The schema is the
	// table's, after masking. It fails with lake.foreign_table when a table of the
	// name exists that Lakeweir did not make.
	Open(ctx context.Context, table *catalog.Table, schema *catalog.Schema) (Layers, error)
}

// Layers are the lake tables of one table. Current and History are nil when the
// table does not keep them. Used by one goroutine at a time.
type Layers struct {
	Bronze  Bronze
	Current Current
	History History
}

// ErrStale is returned by Write when another writer committed to the layer since
// Find: find, fold and write again; and by Append when another writer moved bronze's
// cursor: read its state again, and append what it has not got.
var ErrStale = errors.New("the layer changed since it was read")

// ErrTooMuch is returned by Find when it would have to read more rows than may be in
// memory at once: fold fewer changes at a time or, where there are no fewer, find
// with Touched.Large while nobody else does. FindKeys returns it when the rows take
// more than they may.
var ErrTooMuch = errors.New("too many rows to read at once")

// ErrMore is returned by Find, with some of the rows, for a Truncate alone: write
// what the fold makes of those, leaving the state as it is, and find again.
var ErrMore = errors.New("there are more rows")

// LayerState is what a layer's newest snapshot says.
type LayerState struct {
	Cursor   catalog.Cursor
	Snapshot *catalog.SnapshotProgress // bronze only
	Offsets  *catalog.TopicOffsets     // bronze only, of tables that are read from a topic
	// CommitTime is the newest commit time that the layer holds, in microseconds
	// since 1970 UTC; 0 when it is empty.
	CommitTime int64
	// Late numbers the last late changes: of bronze, how many commits have admitted
	// some; of a layer, up to which of them it has made keys anew.
	Late int64
	// Remade is how often keys of the layer were made anew from bronze.
	Remade int64
}

// Commit describes one commit to a layer.
type Commit struct {
	Rows       int   // rows written
	Removed    int   // rows removed
	Total      int64 // rows that the layer holds after it; negative when unknown
	Bytes      int64
	Files      int
	SnapshotID int64
	Took       time.Duration
}

// Bronze is the layer of every change.
type Bronze interface {
	// State reads the layer's state from the catalog.
	State(ctx context.Context) (LayerState, error)
	// Append writes the changes and the state in one commit. Late changes, which come
	// in any order, get the number to.Late. It resolves a lost
	// reply itself: when it returns nil the rows are there once, when it returns
	// an error they are not there unless State says so. It fails with ErrStale when
	// the cursor is not the one that it was before.
	Append(ctx context.Context, batches []*change.Batch, to LayerState) (Commit, error)
	// Read yields the changes after one position up to and including another, in
	// order, in batches of at most about maxRows changes, never ending between the
	// halves of a key move. Batches belong to the caller.
	Read(ctx context.Context, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error]
	// ReadKeys is Read of the changes that concern the keys; Whole is not set. It
	// reads the keys of all of bronze that may have some, and the rest where there
	// are any.
	ReadKeys(ctx context.Context, keys *fold.KeySet, after, through catalog.Position, maxRows int) iter.Seq2[*change.Batch, error]
	// ReadLate yields the late changes that were admitted after a number, in any
	// order.
	ReadLate(ctx context.Context, after int64, maxRows int) iter.Seq2[*change.Batch, error]
	// Holds reports, for each position, whether a change stands there.
	Holds(ctx context.Context, positions []catalog.Position) ([]bool, error)
	// First returns the position of the first change that did not come late, when
	// bronze does not hold every change any more that was appended: what came before
	// is gone. Zero when bronze holds them all.
	First(ctx context.Context) (catalog.Position, error)
}

// ErrNoBefore is returned by FindBefore when the layer does not show any more what it
// held then.
var ErrNoBefore = errors.New("the layer's state before the transaction is gone")

// Current is the SCD1 layer. Cells of an image that are Unavailable are NULL in
// the lake and named in the row's _unavailable_columns, so that Find returns them
// as Unavailable again; the same holds for History.
type Current interface {
	State(ctx context.Context) (LayerState, error)
	// Find returns the layer's rows of the touched keys, in any order; keys that
	// it does not hold are left out. It may fail with ErrTooMuch, and return some of
	// the rows with ErrMore.
	Find(ctx context.Context, touched fold.Touched) ([]fold.CurrentFound, error)
	// FindKeys returns the rows of the keys, with images, or ErrTooMuch when they take
	// more than so many bytes.
	FindKeys(ctx context.Context, keys *fold.KeySet, maxBytes int) ([]fold.CurrentFound, error)
	// Before returns the cursor that the layer had before the first commit with a part
	// of the transaction in which its cursor stands, or ErrNoBefore when the layer does
	// not show any more what it held then, or keys were made anew since.
	Before(ctx context.Context) (catalog.Position, error)
	// FindBefore returns what the layer held then of the touched keys, with images.
	FindBefore(ctx context.Context, touched fold.Touched) (fold.CurrentBefore, error)
	// Write applies the result and the state in one commit, or fails with ErrStale.
	// A lost reply is resolved as in Bronze.Append. An empty result still moves
	// the state.
	Write(ctx context.Context, result fold.CurrentResult, to LayerState) (Commit, error)
}

// History is the SCD2 layer.
type History interface {
	State(ctx context.Context) (LayerState, error)
	// Find returns the open versions of the touched keys, and every version, open
	// and closed, of the keys of whole (few, and seldom any); with images always,
	// in any order. It may fail as Current.Find does.
	Find(ctx context.Context, touched fold.Touched, whole [][]byte) ([]fold.VersionFound, error)
	// FindClosed returns fold.Closed of each of the keys that has a closed version
	// which ended after a time, in microseconds since 1970 UTC.
	FindClosed(ctx context.Context, keys [][]byte, since int64) ([]fold.VersionFound, error)
	// FindKeys is as Current.FindKeys, with every version.
	FindKeys(ctx context.Context, keys *fold.KeySet, maxBytes int) ([]fold.VersionFound, error)
	// Before is as Current.Before.
	Before(ctx context.Context) (catalog.Position, error)
	// FindBefore is as Current.FindBefore, with open versions.
	FindBefore(ctx context.Context, touched fold.Touched) (fold.HistoryBefore, error)
	// Write is as Current.Write.
	Write(ctx context.Context, result fold.HistoryResult, to LayerState) (Commit, error)
}

// Mask transforms the PII columns of a batch, before anything of it is stored or
// logged. Afterwards the batch's rows and keys are of the masked schema.
type Mask interface {
	Apply(b *change.Batch) error
}

// Observer is told what happens; the registry keeps it. None of it is the truth:
// that is in the lake. Calls must not block for long; errors are the observer's.
type Observer interface {
	// KnownSchema returns the newest recorded columns of the table, or nil.
	KnownSchema(ctx context.Context, table *catalog.Table) (*catalog.Schema, error)
	// Schema records the table's columns and returns them with their version.
	Schema(ctx context.Context, table *catalog.Table, schema *catalog.Schema) (*catalog.Schema, error)
	State(ctx context.Context, s TableStatus)
	Batch(ctx context.Context, b BatchRecord)
	Source(ctx context.Context, source string, s SourceStatus, flushed catalog.LSN)
}

// StartObserver is an optional ability of an Observer: it is told which tables a run
// begins to read, and after which place.
type StartObserver interface {
	Started(ctx context.Context, table string, after catalog.Cursor)
}

// TableStatus is where a table is in its life.
type TableStatus struct {
	Table    string
	State    catalog.State
	Fault    *catalog.Error // why it is stopped, else nil
	Snapshot *catalog.SnapshotProgress
	// Through is how far each layer is known to be complete: every change of the
	// table that committed before it is there, also when there was none. Zero when
	// the layer is not kept or nothing is known.
	BronzeThrough, CurrentThrough, HistoryThrough catalog.LSN
	// FreshAt is the time up to which the layers that are kept show the source, by
	// the source's clock; zero when unknown.
	FreshAt time.Time
}

// BatchRecord describes one committed batch of one table.
type BatchRecord struct {
	Table    string
	ID       string
	At       time.Time
	From, To catalog.Cursor
	Creates, Updates, Deletes, Reads, Truncates,
	Unfit int
	Newest  int64 // commit time of the newest change, microseconds since 1970 UTC
	Bytes   int64
	Bronze  Commit
	Current Commit
	History Commit
	Unfits  map[string]int // columns with values that did not fit their type, and how many
}
