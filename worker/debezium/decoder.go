package debezium

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// SchemaRegistry finds Avro schemas. Safe for concurrent use when several decoders
// share it.
type SchemaRegistry interface {
	// Schema returns the text of the schema with a registry's number. It may block. An
	// error that is worth another try is a *catalog.Error of kind Unavailable.
	Schema(ctx context.Context, id uint32) (string, error)
}

// DefaultPlaceholder is what Debezium puts for a large value that did not change,
// unless unavailable.value.placeholder says otherwise.
const DefaultPlaceholder = "__debezium_unavailable_value"

// TimePrecision is how numbers stand for dates and times that come without a schema:
// the connector's time.precision.mode.
type TimePrecision uint8

// The precisions.
const (
	Microseconds TimePrecision = iota // "microseconds", and what the recommended settings say
	Adaptive                          // "adaptive": by the column's declared precision
	AdaptiveTime                      // "adaptive_time_microseconds": as adaptive, times in microseconds
	Milliseconds                      // "connect"
	Nanoseconds                       // "nanoseconds"
)

// BinaryForm is how bytes stand in text that comes without a schema: the connector's
// binary.handling.mode.
type BinaryForm uint8

// The forms.
const (
	Base64    BinaryForm = iota // "bytes" and "base64"
	Base64URL                   // "base64-url-safe"
	Hex                         // "hex"
)

// Config says what the records are of.
type Config struct {
	Table *catalog.Table
	// Schema has the columns of the source, unmasked; Column.Source is the type there.
	Schema *catalog.Schema
	// Registry is asked for Avro schemas; nil: Avro is refused.
	Registry SchemaRegistry
	// FullIdentity says that the table is REPLICA IDENTITY FULL: before images are the
	// whole row. Else only their key columns are trusted.
	FullIdentity bool
	// Placeholder is the connector's unavailable.value.placeholder; empty: DefaultPlaceholder.
	Placeholder string
	// Time and Binary say how to read what comes without a schema; a schema says it itself.
	Time   TimePrecision
	Binary BinaryForm
}

// Decoder reads records of one table at one version of its columns. Not safe for
// concurrent use.
type Decoder struct {
	cfg Config
}

// New returns a decoder. It fails when a column's type cannot come through Debezium.
func New(cfg Config) (*Decoder, error) {
	return &Decoder{cfg: cfg}, nil
}

// Decode reads a record and appends its rows to into, which must be of the config's
// schema. The error is a *catalog.Error without a place, which the caller knows: a
// shape that is not the table's is of code schema.changed, what cannot be read is of
// code change.undecodable. Rows that were appended before it hold nothing of use and
// belong to no change. ctx bounds the wait for the registry alone.
//
// The record's kind is told by its shape, not by its topic: a control record in a
// table's topic is no error.
func (d *Decoder) Decode(ctx context.Context, rec *Record, into *change.Rows) (Event, error) {
	panic("not built yet")
}
