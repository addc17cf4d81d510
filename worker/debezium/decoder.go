package debezium

import (
	"context"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
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
	Base64    BinaryForm = iota // "base64"
	Base64URL                   // "base64-url-safe"
	Hex                         // "hex"
	// Bytes is "bytes", Debezium's default: base64 in JSON too, but of the four only this
	// one has a placeholder for large values that did not change.
	Bytes
)

// DecimalForm is how numerics stand in what comes without a schema: the connector's
// decimal.handling.mode. "double" is refused, since it is not exact.
type DecimalForm uint8

// The forms.
const (
	DecimalString  DecimalForm = iota // "string", as the recommended settings say
	DecimalPrecise                    // "precise", Debezium's default: unscaled bytes
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
	// Time and Decimal say how to read what comes without a schema; a schema says it
	// itself. Binary also says how to read the strings of a schema.
	Time    TimePrecision
	Decimal DecimalForm
	Binary  BinaryForm
	// Ignored are columns of the source that the lake has not and that Debezium sends
	// at times: generated ones, which come with what is read and not with the stream.
	Ignored []string
	// Monetary is the database's lc_monetary, since Debezium sends amounts of money
	// without their currency. Empty, or one whose text is not known here: values of
	// type money are change.Unfit.
	Monetary string
}

// Decoder reads records of one table at one version of its columns. Not safe for
// concurrent use.
type Decoder struct {
	values
	cfg   Config
	plain *plan // of records without a schema
	used  *plan // of the record at hand
	shape shape
	block block // the schema of the last record that had one in JSON
	avro  map[uint32]*avroSchema
	keys  recordKeys
	e     envelope
}

// New returns a decoder.
func New(cfg Config) (*Decoder, error) {
	if cfg.Placeholder == "" {
		cfg.Placeholder = DefaultPlaceholder
	}
	for _, c := range cfg.Schema.Columns {
		if !c.Type.Equal(typemap.Postgres(c.Source)) {
			return nil, catalog.Errorf(catalog.Internal, catalog.CodeInternal, "please report it",
				"column %s is masked before it is decoded", c.Name)
		}
	}
	d := &Decoder{cfg: cfg, plain: newPlan(&cfg), avro: map[uint32]*avroSchema{}}
	d.placeholder = []byte(cfg.Placeholder)
	d.listPlaceholders = listPlaceholders(cfg.Placeholder)
	d.monetary = monetaryOf(cfg.Monetary)
	return d, nil
}

// Decode reads a record and appends its rows to into, which must be of the config's
// schema. The error is a *catalog.Error without a place, which the caller knows: a
// shape that is not the table's is of code schema.changed, what cannot be read is of
// code change.undecodable. Rows that were appended before it hold nothing of use and
// belong to no change; so do those of a control record. ctx bounds the wait for the
// registry alone.
//
// The record's kind is told by its shape, not by its topic: a control record in a
// table's topic is no error.
func (d *Decoder) Decode(ctx context.Context, rec *Record, into *change.Rows) (Event, error) {
	ev, err := d.decode(ctx, rec, into)
	d.trim()
	if err != nil {
		return Event{Before: -1, After: -1, Other: -1}, fault(err)
	}
	return ev, nil
}

func (d *Decoder) decode(ctx context.Context, rec *Record, into *change.Rows) (Event, error) {
	// A value of no bytes stands for the same: no converter writes one for anything else.
	if len(rec.Value) == 0 {
		return tombstone, nil
	}
	d.e, d.used = envelope{before: -1, after: -1}, d.plain
	if rec.Value[0] == avroMagic {
		null, err := d.readAvro(ctx, rec.Value, into)
		if err != nil || null {
			return tombstone, err
		}
	} else if null, err := d.readJSON(rec.Value, into); err != nil || null {
		return tombstone, err
	}
	return d.event(ctx, &d.e, rec, into)
}

var tombstone = Event{Kind: Tombstone, Before: -1, After: -1, Other: -1}
