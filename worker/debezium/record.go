package debezium

import (
	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Record is a Kafka record as the decoder needs it. The slices belong to the caller
// and are not kept.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
	Headers   []Header
	Key       []byte // nil for null
	Value     []byte // nil for null
}

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Kind is what a record is.
type Kind uint8

// The kinds. Only Row and Truncate are changes; the others say nothing about a table's
// rows and are passed by.
const (
	Row          Kind = iota + 1 // a row was created, updated, deleted or read
	Truncate                     // every row of the table is gone
	Tombstone                    // no value: tells Kafka's compaction that a key is gone, after the event that said so
	Heartbeat                    // of the connector
	Transaction                  // the begin or end of a transaction
	Signal                       // a signal to the connector
	SchemaChange                 // a record of a schema history topic
	Notification                 // of the connector, about its snapshots
	Message                      // pg_logical_emit_message
)

// IsChange reports whether records of the kind change rows.
func (k Kind) IsChange() bool { return k == Row || k == Truncate }

// Snapshot is how a row was read, if it was.
type Snapshot uint8

// The ways.
const (
	Streamed    Snapshot = iota // not read: a change from the log
	Initial                     // by the connector's own snapshot
	InitialLast                 // the same, and it is the table's last row of that snapshot
	Incremental                 // by a snapshot that a signal asked for
)

// RunID names one run of the connector's task, which begins anew when the task does.
// Zero when the record does not say.
type RunID [16]byte

// Event is what a record says. Its rows are in the Rows that were handed in.
type Event struct {
	Kind Kind
	Op   change.Op // of a Row or Truncate
	// Before, After and Other are rows or -1, as of change.Change. Before holds those
	// columns that can be trusted, and only those: Debezium invents values for columns
	// that the server did not send. Other is also -1 when the header that names the
	// other key could not be read: its partner, the next or the last change of this
	// partition and LSN, has it.
	Before, After, Other int
	// MovedTo and MovedFrom mark the two halves of a key move: a Delete of the old key,
	// and a Create of the new one that follows it in the same partition, or in another
	// when the topic has several.
	MovedTo, MovedFrom bool

	Snapshot Snapshot
	LSN      catalog.LSN // of the change itself; of an initial read, the snapshot's; of an incremental one, the end of the log when it was read
	// Sequence is the end of the last transaction that the connector had seen whole; 0
	// when it had seen none yet. HasSequence says that the record carries a sequence.
	Sequence    catalog.LSN
	HasSequence bool
	TxID        uint64 // 0 for what was read
	CommitTime  int64  // microseconds since 1970 UTC; of what was read, when
	Run         RunID
}
