package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Source reads a Postgres database. It implements pipeline.Source.
type Source struct {
	cfg   Config
	log   *slog.Logger
	epoch catalog.Epoch
	pool  *pgxpool.Pool
	// lookups is where Next asks for what the stream does not tell: the pool.
	lookups querier

	life    context.Context // of the goroutines, from Start to Close
	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Once

	stream  *stream
	ends    endOfLog
	arrived chan struct{} // a chunk may have come

	order     []*table // in the order given to Start
	byName    map[catalog.TableName]*table
	byOID     map[uint32]*table
	relations map[uint32]*relation
	tx        transaction
	nearXID   uint64

	packet    *packet
	at        int         // the next message of the packet
	through   catalog.LSN // everything that committed before it was decoded
	torn      catalog.LSN // commit of the transaction that a lost connection cut off; 0: none
	rows      int         // changes pending, and their size
	bytes     int
	blocked   bool // a table without a key holds too much back: the log has to wait
	waiting   bool // a chunk waits for the log to reach its place
	askedEnd  time.Time
	faults    []pipeline.Fault
	replayed  []pipeline.Replayed
	handedTo  catalog.LSN // the Through of the last slice
	toldYet   bool        // what the DDL log told of a table waits for the end of a transaction
	ddlWhole  bool        // the DDL log tells of every command
	startedAt catalog.LSN // the end of the log then
	anyLate   bool        // a table had another shape then than was decided

	generations map[string]uint32 // of the tables given to Start, as of then
	endStream   context.CancelFunc
	parts       []*parted // partitioned tables; fixed once Start has returned
	watch       *partWatch
	gaveUp      atomic.Bool // the slot is being dropped

	idle      bool // no table could start: there is nothing to read
	asked     asked
	visible   atomic.Pointer[change.Visibility] // what a reader sees, as of late
	confirmed catalog.LSN
	notedAt   time.Time
}

var _ pipeline.Source = (*Source)(nil)

// New returns a source that has not connected yet.
func New(cfg Config) *Source {
	s := &Source{
		cfg: cfg.withDefaults(), arrived: make(chan struct{}, 1),
		byName: map[catalog.TableName]*table{}, byOID: map[uint32]*table{}, relations: map[uint32]*relation{},
	}
	s.log = s.cfg.Logger
	s.watch = &partWatch{Source: s, nudges: make(chan struct{}, 1)}
	return s
}

// drop ends the reading of a table.
func (s *Source) drop(name string) {
	for _, t := range s.order {
		if t.name == name {
			s.remove(t)
			return
		}
	}
}

func (s *Source) remove(t *table) {
	if t.window != nil {
		t.window.cancel()
		t.window = nil
	}
	for i, o := range s.order {
		if o == t {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	delete(s.byName, t.cfg.Name)
	delete(s.byOID, t.oid)
	for _, r := range s.relations {
		if r.table == t {
			r.table = nil
		}
	}
}

// fault stops a table; what came before goes out with the next slice, and then the
// fault.
func (s *Source) fault(t *table, state catalog.State, err *catalog.Error) {
	s.raise(t, pipeline.Fault{State: state, Err: err})
}

// raise is fault with more said of it. A table that can park does: the reading of its
// rows waits meanwhile.
func (s *Source) raise(t *table, f pipeline.Fault) {
	if t.window != nil {
		s.closeWindow(t)
	}
	if t.batch != nil && len(t.batch.changes) == 0 {
		t.batch = nil
	}
	f.Table, f.From = t.name, s.through
	if s.tx.open {
		f.From = s.tx.commit
	}
	f.Parks = s.cfg.Park && f.State == catalog.Quarantined
	switch {
	case !f.Parks:
		t.stopped = true
		t.park = nil
		t.snap = nil
		t.rereads = rereads{}
	case t.park == nil:
		s.startParking(t)
	default: // in a replay, or while it parks
		t.park.replay = nil
		t.shape.told = nil
		if t.park.run != nil {
			f.From = min(f.From, t.park.run.low)
		}
		s.count()
	}
	s.faults = append(s.faults, f)
}

// Close ends the reading, once Next is called no more. It tells the server a last
// time what was confirmed, and returns when the connections are closed or ctx ends.
func (s *Source) Close(ctx context.Context) error {
	s.closing.Do(func() {
		if err := s.obey(ctx, true); err != nil {
			s.log.WarnContext(ctx, "last confirmed position not noted", "source", s.cfg.Source.Name, "error", err)
		}
		if s.end != nil {
			s.end()
		}
	})
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		if s.pool != nil {
			s.pool.Close()
		}
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
