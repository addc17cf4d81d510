package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Config is what a Source needs.
type Config struct {
	Source   *catalog.Source // with Kafka and Connector
	Password catalog.Secret  // of SASL, resolved
	// Describe asks the source itself for its tables; it is tried again until it
	// answers. Nil: only tables whose columns are known already can be read.
	Describe func(ctx context.Context, tables []*catalog.Table) (Description, error)
	// Slot is asked where the source's log and the connector's slot stand; nil: nobody is.
	// The Source closes it.
	Slot SlotWatch
	// Signals have the connector read rows again; nil: it cannot be asked.
	Signals Signals
	// Skips are records to pass by when they cannot be read. Skipped, when not nil, is
	// told of each that was, and why it could not be read; it must not block.
	Skips   map[Record]Skip
	Skipped func(table string, record Record, skip Skip, why *catalog.Error)
	// Suspected, when not nil, is told where rows may be missing, lost by Debezium, in a
	// table that goes on: before record. A record that is read again is told again. It
	// must not block.
	Suspected func(table string, record Record, loss *debezium.Loss)
	// Notes may be nil: then a gap that the topic does not prove any more is forgotten by
	// the next run.
	Notes Notes
	// Schemas finds Avro schemas; default: the connector's schema registry.
	Schemas debezium.SchemaRegistry
	Logger  *slog.Logger     // default: none
	Clock   func() time.Time // default time.Now

	Limits Limits
}

// SlotWatch knows where a source's log and slot stand. Safe for concurrent use.
type SlotWatch interface {
	Status(ctx context.Context) (pipeline.SourceStatus, error)
	Close()
}

// Notes keep what must outlive a run about a table, durably; table is
// catalog.TableName.String().
type Notes interface {
	// ReadGap returns the gap that was noted for a table and the generation that it is
	// of; nil when none was.
	ReadGap(ctx context.Context, table string) (*catalog.Error, uint32, error)
	// NoteGap notes that changes are missing for a table.
	NoteGap(ctx context.Context, table string, generation uint32, gap *catalog.Error) error
	// ForgetGap removes the note.
	ForgetGap(ctx context.Context, table string) error
}

// Record names a record of a topic.
type Record struct {
	Topic     string
	Partition int32
	Offset    int64
}

func (r Record) String() string {
	return fmt.Sprintf("topic %s, partition %d, offset %d", r.Topic, r.Partition, r.Offset)
}

// Skip says who has a record passed by, and why.
type Skip struct {
	By, Reason string
}

// Description is what a source says of itself.
type Description struct {
	Epoch    catalog.Epoch
	Monetary string                      // the database's lc_monetary
	Tables   map[string]TableDescription // by catalog.TableName.String(); without those that do not exist
}

// TableDescription is what a source says of a table.
type TableDescription struct {
	Schema       *catalog.Schema
	Generated    []string // columns that come with what is read and not with the stream, and that the lake has not
	FullIdentity bool     // REPLICA IDENTITY FULL
	Err          error    // why there is no schema
}

// Limits bound memory and patience.
type Limits struct {
	BatchRows  int // changes of a table before they are handed over; default 50,000. A transaction may take twice as many
	BatchBytes int // the same in bytes; default 32 MiB
	HeldBytes  int // bytes that wait for the end of their transaction, over all tables; default 32 MiB
	// FetchBytes bounds what one broker sends at once, as it is compressed; default
	// 8 MiB. A larger record comes alone.
	FetchBytes int

	NextWait   time.Duration // the longest that Next waits for something; default 500 ms
	Settle     time.Duration // how long after an event was seen those before it count as being in their topics; default 500 ms
	CheckEvery time.Duration // how often topics are looked at; default 5 s
	RetryEvery time.Duration // how often what failed is tried again; default 1 s
	Request    time.Duration // how long a request to the brokers may take; default 10 s
	SignalWait time.Duration // how long the connector may take to read rows again; default 5 min
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the clock where none is given
	}
	l := c.Limits
	c.Limits = Limits{
		BatchRows:  orDefault(l.BatchRows, 50_000),
		BatchBytes: orDefault(l.BatchBytes, 32<<20),
		HeldBytes:  orDefault(l.HeldBytes, 32<<20),
		FetchBytes: orDefault(l.FetchBytes, 8<<20),
		NextWait:   orDefault(l.NextWait, 500*time.Millisecond),
		Settle:     orDefault(l.Settle, 500*time.Millisecond),
		CheckEvery: orDefault(l.CheckEvery, 5*time.Second),
		RetryEvery: orDefault(l.RetryEvery, time.Second),
		Request:    orDefault(l.Request, 10*time.Second),
		SignalWait: orDefault(l.SignalWait, 5*time.Minute),
	}
	return c
}
