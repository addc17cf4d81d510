package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/registry"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/kafka"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// observer tells the registry what the pipeline tells it: at once what must be
// answered, and gathered, once a second, what must not hold the pipeline up. A
// registry that is down costs news, never data.
type observer struct {
	registry *registry.Registry
	source   string
	worker   string // its id
	logger   *slog.Logger

	mu      sync.Mutex
	states  map[string]registry.TableStatus
	batches []registry.BatchRecord
	status  *pipeline.SourceStatus
	flushed catalog.LSN
	events  []event
	quiet   bool // the registry's absence has been logged
}

// event is one of a table, or of the source when table is empty.
type event struct {
	table  string
	kind   registry.EventKind
	detail map[string]any
}

// keepBatches bounds the records that wait for a registry that is down.
const keepBatches = 10_000

func newObserver(r *registry.Registry, source, worker string, logger *slog.Logger) *observer {
	return &observer{registry: r, source: source, worker: worker, logger: logger, states: map[string]registry.TableStatus{}}
}

// KnownSchema implements pipeline.Observer.
func (o *observer) KnownSchema(ctx context.Context, t *catalog.Table) (*catalog.Schema, error) {
	return o.registry.Schema(ctx, o.source, t.Name.String())
}

// Schema implements pipeline.Observer.
func (o *observer) Schema(ctx context.Context, t *catalog.Table, s *catalog.Schema) (*catalog.Schema, error) {
	return o.registry.RecordSchema(ctx, o.source, t.Name.String(), s)
}

// State implements pipeline.Observer.
func (o *observer) State(_ context.Context, s pipeline.TableStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.states[s.Table] = registry.TableStatus(s)
}

// Batch implements pipeline.Observer.
func (o *observer) Batch(_ context.Context, b pipeline.BatchRecord) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.batches) < keepBatches {
		o.batches = append(o.batches, registry.BatchRecord{
			Table: b.Table, ID: b.ID, At: b.At, From: b.From, To: b.To,
			Creates: b.Creates, Updates: b.Updates, Deletes: b.Deletes, Reads: b.Reads, Truncates: b.Truncates, Unfit: b.Unfit,
			Newest: b.Newest, Bytes: b.Bytes, Unfits: b.Unfits,
			Bronze: registry.Commit(b.Bronze), Current: registry.Commit(b.Current), History: registry.Commit(b.History),
		})
	}
}

// Source implements pipeline.Observer.
func (o *observer) Source(_ context.Context, _ string, s pipeline.SourceStatus, flushed catalog.LSN) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status, o.flushed = &s, flushed
}

// Started implements pipeline.StartObserver.
func (o *observer) Started(_ context.Context, table string, after catalog.Cursor) {
	o.add(event{table, registry.Started, map[string]any{"worker": o.worker, "cursor": after.String()}})
}

// Strained implements pipeline.StrainObserver.
func (o *observer) Strained(_ context.Context, from, to catalog.BudgetStage, s pipeline.SourceStatus, budget int64) {
	o.add(event{"", registry.BudgetStaged, map[string]any{"from": from, "to": to, "retainedBytes": s.Retained, "budgetBytes": budget, "heldBy": s.HeldBy}})
}

// SlotDropped implements pipeline.StrainObserver.
func (o *observer) SlotDropped(_ context.Context, slot string, s pipeline.SourceStatus, budget int64) {
	o.add(event{"", registry.SlotDropped, map[string]any{"slot": slot, "retainedBytes": s.Retained, "budgetBytes": budget, "heldBy": s.HeldBy}})
}

// suspected is what a kafka.Source tells of rows that may be missing.
func (o *observer) suspected(table string, at kafka.Record, l *debezium.Loss) {
	o.add(event{table, registry.MaybeMissing, map[string]any{
		"partition": at.Partition, "offset": at.Offset, "lsn": l.LSN.String(), "sequence": l.Sequence.String(), "txId": l.TxID,
		"rows": l.Rows, "run": l.Run.String(), "nextRun": l.Next.String(),
		"message": "rows may be missing before " + at.String() + ": " + l.String(), "hint": "lakeweir reconcile " + o.source + "/" + table + " tells",
	}})
}

func (o *observer) add(e event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.events) < keepBatches {
		o.events = append(o.events, e)
	}
}

// record writes events in their order, and returns those that remain.
func (o *observer) record(ctx context.Context, events []event) ([]event, error) {
	for i, e := range events {
		var err error
		if e.table == "" {
			err = o.registry.RecordSourceEvent(ctx, o.source, e.kind, e.detail)
		} else {
			err = o.registry.RecordEvent(ctx, o.source, e.table, e.kind, e.detail)
		}
		if err != nil {
			return events[i:], err
		}
	}
	return nil, nil
}

// run writes what was gathered, once a second and a last time at the end.
func (o *observer) run(ctx context.Context, w registry.Worker) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		o.write(ctx, w)
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			o.write(last, w)
			return
		case <-tick.C:
		}
	}
}

func (o *observer) write(ctx context.Context, w registry.Worker) {
	o.mu.Lock()
	states := make([]registry.TableStatus, 0, len(o.states))
	for _, s := range o.states {
		states = append(states, s)
	}
	clear(o.states)
	batches, status, flushed := o.batches, o.status, o.flushed
	events := o.events
	o.batches, o.status, o.events = nil, nil, nil
	o.mu.Unlock()

	err := o.registry.Heartbeat(ctx, w)
	if err == nil && len(events) > 0 {
		events, err = o.record(ctx, events)
	}
	if err == nil {
		err = o.registry.SetTableStatuses(ctx, o.source, states)
	}
	if err == nil && status != nil {
		err = o.registry.SetSourceStatus(ctx, o.source, registry.SourceStatus(*status), flushed)
	}
	if err == nil && len(batches) > 0 {
		if err = o.registry.RecordBatches(ctx, o.source, batches); err == nil {
			batches = nil
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batches = append(batches, o.batches...)
	o.events = append(events, o.events...)
	switch {
	case err == nil:
		o.quiet = false
	case !o.quiet && ctx.Err() == nil:
		o.quiet = true
		o.logger.WarnContext(ctx, "the registry is not told what happens; capture goes on", "source", o.source, "error", err)
	}
}

// slotNotes keeps in the registry how far the slot was allowed to forget.
type slotNotes struct {
	registry *registry.Registry
	source   *catalog.Source
}

// ReadFlushed implements postgres.SlotNotes.
func (n slotNotes) ReadFlushed(ctx context.Context) (catalog.LSN, bool, error) {
	slot, err := n.registry.ReadSlot(ctx, n.source.Name)
	if err != nil || slot == nil || slot.Name != n.source.Slot {
		return 0, false, err
	}
	return slot.FlushedLSN, true, nil
}

// WriteFlushed implements postgres.SlotNotes.
func (n slotNotes) WriteFlushed(ctx context.Context, through catalog.LSN) error {
	err := n.registry.WriteSlotFlush(ctx, n.source.Name, through)
	if catalog.KindOf(err) != catalog.NotFound {
		return err
	}
	return n.registry.WriteSlot(ctx, registry.Slot{Source: n.source.Name, Name: n.source.Slot, ConsistentLSN: through, FlushedLSN: through})
}
