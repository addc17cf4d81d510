package pipeline

import (
	"log/slog"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
)

// Config is what a pipeline works with.
type Config struct {
	Source *catalog.Source
	Tables []*catalog.Table
	Reader Source
	Lake   Lake
	// Mask returns what masks the table's batches of one schema, or nil when
	// nothing is to be masked. It is given the source's schema.
	Mask     func(table *catalog.Table, schema *catalog.Schema) (Mask, error)
	Observer Observer
	// Rereads keeps requests to read rows again; nil: none are made or taken up.
	Rereads Rereads
	Logger  *slog.Logger
	// Clock returns the time; default time.Now.
	Clock  func() time.Time
	Limits Limits
}

// Limits bound memory and work.
type Limits struct {
	// BatchRows and BatchBytes are where a table's waiting changes are saved before
	// their time; a transaction larger than that is split. Default 250,000 changes
	// and 48 MiB.
	BatchRows  int
	BatchBytes int
	// MemoryBytes is where reading waits for saving, over all tables; default 96 MiB.
	MemoryBytes int
	// RemakeBytes bounds the rows in memory while keys are made anew from bronze;
	// default 64 MiB. What one key alone takes is not bounded.
	RemakeBytes int
	// Parallel is how many tables are saved at once; default 3.
	Parallel int
	// SaveEvery overrides how long changes wait before they are saved; zero means
	// that the table's tier decides.
	SaveEvery time.Duration
	// DrainWithin bounds the last save after the context has ended; default 30 s.
	DrainWithin time.Duration
	// ReportEvery is how often the observer is told of progress; default 1 s.
	ReportEvery time.Duration
	// RereadEvery is how often new requests to read rows again are looked for;
	// default 500 ms.
	RereadEvery time.Duration
	// DropAfter is how long a slot stays at its budget before it is dropped, where the
	// source says so; default 30 s.
	DropAfter time.Duration
}

// WithDefaults returns c with every unset value at its default.
func (c Config) WithDefaults() Config {
	l := &c.Limits
	def(&l.BatchRows, 250_000)
	def(&l.BatchBytes, 48<<20)
	def(&l.MemoryBytes, 96<<20)
	def(&l.RemakeBytes, remakeBytes)
	def(&l.Parallel, 3)
	def(&l.DrainWithin, 30*time.Second)
	def(&l.ReportEvery, time.Second)
	def(&l.RereadEvery, 500*time.Millisecond)
	def(&l.DropAfter, 30*time.Second)
	if c.Clock == nil {
		c.Clock = time.Now //nolint:forbidigo // the one place where the real clock comes in
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Mask == nil {
		c.Mask = func(*catalog.Table, *catalog.Schema) (Mask, error) { return nil, nil } //nolint:nilnil // nothing to mask
	}
	return c
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}
