package pipelinetest

import (
	"context"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold/foldtest"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Log is the log of a source with several tables. It outlives the sources that
// read it, and forgets what was confirmed.
type Log struct {
	mu        sync.Mutex
	Parts     []Part // in commit order over all tables
	Confirmed catalog.LSN
	Most      int // how many parts may be read; 0: all
}

// Part is a stretch of one table's log that is handed over in one slice.
type Part struct {
	Table  *catalog.Table
	Schema *catalog.Schema
	Events []foldtest.Event
	// Split says that the stretch ends inside a transaction.
	Split bool
	// At is where a stretch of late events stands in the log: they were written
	// there, though they tell of an earlier time. Zero for others.
	At catalog.LSN
	// Fault stops the table instead.
	Fault *catalog.Error
}

// End is where the part ends in the log: at the commit of its last event.
func (p Part) End() catalog.LSN {
	if p.At != 0 {
		return p.At
	}
	return p.Events[len(p.Events)-1].Position().Commit
}

// Begin is where the part begins.
func (p Part) Begin() catalog.LSN {
	if p.At != 0 {
		return p.At
	}
	return p.Events[0].Position().Commit
}

// Source reads a Log, from what was confirmed on, leaving out what bronze has.
type Source struct {
	log     *Log
	cursors map[string]catalog.Position
	next    int
	dropped map[string]bool
	idle    chan struct{}
	once    sync.Once
}

// NewSource returns a source that reads the log. Idle is closed when all of it has
// been handed over.
func NewSource(log *Log) *Source {
	return &Source{log: log, cursors: map[string]catalog.Position{}, dropped: map[string]bool{}, idle: make(chan struct{})}
}

// Idle is closed when the whole log has been handed over.
func (s *Source) Idle() <-chan struct{} { return s.idle }

// Start implements pipeline.Source.
func (s *Source) Start(_ context.Context, tables []pipeline.Resume) ([]pipeline.Fault, error) {
	for _, t := range tables {
		s.cursors[t.Table.Name.String()] = t.Cursor.Position
	}
	return nil, nil
}

// Next implements pipeline.Source.
func (s *Source) Next(ctx context.Context) (pipeline.Slice, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	for s.next < len(s.log.Parts) && (s.log.Most == 0 || s.next < s.log.Most) {
		p := s.log.Parts[s.next]
		s.next++
		if p.End() < s.log.Confirmed {
			continue // the server has forgotten it
		}
		slice := pipeline.Slice{Through: p.End() + 8, ReadAt: time.UnixMicro(1)}
		for _, later := range s.log.Parts[s.next:] {
			slice.Through = min(slice.Through, later.Begin())
		}
		name := p.Table.Name.String()
		if p.Fault != nil {
			slice.Faults = append(slice.Faults, pipeline.Fault{Table: name, State: catalog.Quarantined, Err: p.Fault, From: p.Events[0].Position().Commit})
			return slice, nil
		}
		b := foldtest.Batch(p.Table, p.Schema, p.Events)
		b.Whole = !p.Split
		b.Epoch = catalog.Epoch{System: "1", Timeline: 1}
		b.Snapshot = &catalog.SnapshotProgress{Generation: 1, Done: true}
		kept := b.Changes[:0]
		for _, c := range b.Changes {
			if c.Late = p.At != 0; c.Late || c.Position.Compare(s.cursors[name]) > 0 {
				kept = append(kept, c)
			}
		}
		b.Changes = kept
		if len(kept) > 0 && !s.dropped[name] {
			slice.Batches = []*change.Batch{b}
		}
		return slice, nil
	}
	s.once.Do(func() { close(s.idle) })
	s.log.mu.Unlock()
	defer s.log.mu.Lock()
	select {
	case <-ctx.Done():
		return pipeline.Slice{}, ctx.Err()
	case <-time.After(5 * time.Millisecond):
		return pipeline.Slice{}, nil
	}
}

// Confirm implements pipeline.Source.
func (s *Source) Confirm(_ context.Context, through catalog.LSN) error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.Confirmed = max(s.log.Confirmed, through)
	return nil
}

// Drop implements pipeline.Source.
func (s *Source) Drop(table string) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.dropped[table] = true
}

// Status implements pipeline.Source.
func (s *Source) Status(context.Context) (pipeline.SourceStatus, error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return pipeline.SourceStatus{Confirmed: s.log.Confirmed}, nil
}

// Close implements pipeline.Source.
func (s *Source) Close(context.Context) error { return nil }

// Observer keeps what it is told last.
type Observer struct {
	mu      sync.Mutex
	States  map[string]pipeline.TableStatus
	Batches []pipeline.BatchRecord
	schemas map[string]*catalog.Schema
}

// NewObserver returns an observer that was told nothing.
func NewObserver() *Observer {
	return &Observer{States: map[string]pipeline.TableStatus{}, schemas: map[string]*catalog.Schema{}}
}

// KnownSchema implements pipeline.Observer.
func (o *Observer) KnownSchema(_ context.Context, t *catalog.Table) (*catalog.Schema, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.schemas[t.Name.String()], nil
}

// Schema implements pipeline.Observer.
func (o *Observer) Schema(_ context.Context, t *catalog.Table, s *catalog.Schema) (*catalog.Schema, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := *s
	kept.Version = 1
	o.schemas[t.Name.String()] = &kept
	return &kept, nil
}

// State implements pipeline.Observer.
func (o *Observer) State(_ context.Context, s pipeline.TableStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.States[s.Table] = s
}

// Batch implements pipeline.Observer.
func (o *Observer) Batch(_ context.Context, b pipeline.BatchRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Batches = append(o.Batches, b)
}

// Source implements pipeline.Observer.
func (o *Observer) Source(context.Context, string, pipeline.SourceStatus, catalog.LSN) {}

// Last returns the last state told of a table.
func (o *Observer) Last(table string) pipeline.TableStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.States[table]
}
