package postgres

import (
	"context"
	"log/slog"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// SlotNotes keeps how far a slot was allowed to forget, written before the slot
// is told so. A slot that is further was moved by somebody else.
type SlotNotes interface {
	// ReadFlushed returns what was written last; false when nothing was.
	ReadFlushed(ctx context.Context) (catalog.LSN, bool, error)
	WriteFlushed(ctx context.Context, through catalog.LSN) error
}

// Config is what a Source needs.
type Config struct {
	Source *catalog.Source
	DSN    catalog.Secret // the source's resolved connection
	// Notes may be nil: then a slot that somebody else moved goes unnoticed.
	Notes SlotNotes
	// TableNotes may be nil: then a gap is forgotten by the next run, and partitions
	// that come or go while no worker runs go unnoticed.
	TableNotes TableNotes
	// Partitions may be nil: then a table whose partitions go is stopped.
	Partitions PartitionKeeper
	// Seal and Unseal hide the key values of a masked table that a snapshot's
	// progress has to remember; table is catalog.TableName.String(). Nil where no
	// table's key is masked.
	Seal   func(table string, plain []byte) string
	Unseal func(table, sealed string) ([]byte, error)
	// MaskText returns what the lake shows for a text of a masked key column. Nil
	// where no table's key is masked. Safe for concurrent use.
	MaskText func(p catalog.Protection, text string) (string, error)
	// Park has tables that cannot go on keep what comes for them; see pipeline.Parker.
	// Without it they are stopped, and the source keeps their changes.
	Park   bool
	Logger *slog.Logger     // default: none
	Clock  func() time.Time // default time.Now

	Limits Limits
}

// Limits bound memory and patience.
type Limits struct {
	SliceRows  int // changes in a slice before it is handed over; default 50,000. A transaction of fewer is never split
	SliceBytes int // the same in bytes; default 32 MiB
	HeldRows   int // changes held back for one chunk before the chunk is given up; default 50,000
	HeldBytes  int // the same in bytes; default 32 MiB
	ChunkBytes int // bytes of rows in a chunk before it is cut short; default 16 MiB
	BufferSize int // bytes received and not yet decoded; default 8 MiB

	NextWait         time.Duration // the longest that Next waits for something; default 500 ms
	LockTimeout      time.Duration // of a chunk's wait for the table; default 5 s
	StatementTimeout time.Duration // of a chunk's statements; default 60 s
	ConnectTimeout   time.Duration // default 10 s
	Unreachable      time.Duration // how long the stream may be down before Next says so; default 1 min
	SlotWait         time.Duration // how long Start waits for a slot that is in use; default 30 s
	ConfirmEvery     time.Duration // the shortest time between two notes of a confirmed position; default 1 s
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

func (l Limits) withDefaults() Limits {
	return Limits{
		SliceRows:        orDefault(l.SliceRows, 50_000),
		SliceBytes:       orDefault(l.SliceBytes, 32<<20),
		HeldRows:         orDefault(l.HeldRows, 50_000),
		HeldBytes:        orDefault(l.HeldBytes, 32<<20),
		ChunkBytes:       orDefault(l.ChunkBytes, 16<<20),
		BufferSize:       orDefault(l.BufferSize, 8<<20),
		NextWait:         orDefault(l.NextWait, 500*time.Millisecond),
		LockTimeout:      orDefault(l.LockTimeout, 5*time.Second),
		StatementTimeout: orDefault(l.StatementTimeout, time.Minute),
		ConnectTimeout:   orDefault(l.ConnectTimeout, 10*time.Second),
		Unreachable:      orDefault(l.Unreachable, time.Minute),
		SlotWait:         orDefault(l.SlotWait, 30*time.Second),
		ConfirmEvery:     orDefault(l.ConfirmEvery, time.Second),
	}
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the clock where none is given
	}
	c.Limits = c.Limits.withDefaults()
	return c
}
