package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/typemap"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/fold"
)

// rereading carries requests to read rows again from where they are kept to the
// reader, and word of their end back.
type rereading struct {
	rereads Rereads
	reader  Rereader
	every   time.Duration
	logger  *slog.Logger
	asked   chan []Reread
	handed  map[int64]bool // requests that the reader has; of the pipeline's loop
	news    chan struct{}  // there is something in ended

	mu     sync.Mutex
	ended  []int64 // answered, and not marked as done yet
	silent bool    // it was said that requests cannot be looked for
}

func newRereading(cfg Config) *rereading {
	r := &rereading{
		rereads: cfg.Rereads, every: cfg.Limits.RereadEvery, logger: cfg.Logger,
		asked: make(chan []Reread), handed: map[int64]bool{}, news: make(chan struct{}, 1),
	}
	r.reader, _ = cfg.Reader.(Rereader)
	return r
}

// start looks for requests from time to time, until stop is called.
func (r *rereading) start(ctx context.Context) (stop func()) {
	if r.rereads == nil || r.reader == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(r.every)
		defer tick.Stop()
		for {
			r.look(ctx)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-r.news:
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (r *rereading) look(ctx context.Context) {
	r.finish(ctx)
	pending, err := r.rereads.Pending(ctx)
	if err != nil {
		if !r.silent && ctx.Err() == nil {
			r.silent = true
			r.logger.WarnContext(ctx, "requests to read rows again cannot be looked for", "error", err)
		}
		return
	}
	r.silent = false
	if len(pending) == 0 {
		return
	}
	select {
	case r.asked <- pending:
	case <-ctx.Done():
	}
}

// end notes requests that are answered.
func (r *rereading) end(ids []int64) {
	r.mu.Lock()
	r.ended = append(r.ended, ids...)
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// finish marks the answered requests as done. What cannot be marked is tried again
// later; after a restart the rows are read once more, which changes nothing.
func (r *rereading) finish(ctx context.Context) {
	r.mu.Lock()
	ids := r.ended
	r.ended = nil
	r.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	if err := r.rereads.Done(ctx, ids); err != nil {
		r.mu.Lock()
		r.ended = append(ids, r.ended...)
		r.mu.Unlock()
	}
}

// reread hands new requests to the reader. Those of a table that does not run wait.
func (p *Pipeline) reread(asked []Reread) {
	for _, q := range asked {
		t := p.byName[q.Table]
		if t == nil || t.state.Stopped() || t.ending != nil || p.rereads.handed[q.ID] {
			continue
		}
		p.rereads.handed[q.ID] = true
		p.rereads.reader.Reread(q)
	}
}

// answered takes note of the requests that saved batches answer. Those whose keys are
// still to be made anew in the layers wait for that.
func (p *Pipeline) answered(t *tableRun, saved []*change.Batch) {
	for _, b := range saved {
		t.lacks.forget(b.Rereads)
		t.answers = append(t.answers, b.Rereads...)
	}
	if len(t.answers) > 0 && t.wrong == nil {
		p.rereads.end(t.answers)
		t.answers = nil
	}
}

// hasRereads reports whether the batches answer requests: somebody waits for them.
func hasRereads(batches []*change.Batch) bool {
	return slices.ContainsFunc(batches, func(b *change.Batch) bool { return len(b.Rereads) > 0 })
}

// lacks remembers which rows were asked for again because values of them were never
// sent, so that a row that is changed again meanwhile is not asked for twice.
type lacks struct {
	rereads Rereads
	asked   map[string]int64 // by key, until the request is done
}

// mostLacking is how many keys one request has.
const mostLacking = 1000

func (l *lacks) forget(ids []int64) {
	for key, id := range l.asked {
		for _, done := range ids {
			if id == done {
				delete(l.asked, key)
			}
		}
	}
}

// requestCurrent asks for the rows to be read again that the result writes without
// values that were never sent (rule 8). The request is durable before the fold is, so
// that a crash in between loses none. While the table's rows are being read, the
// reading brings them.
func (k *keeper) requestCurrent(ctx context.Context, table *catalog.Table, r fold.CurrentResult) error {
	if r.Unavailable == 0 || !k.mayRequest() {
		return nil
	}
	var rows []change.Ref
	for i := range r.Write {
		if !r.Write[i].Deleted {
			rows = append(rows, r.Write[i].Image)
		}
	}
	return k.request(ctx, table, rows)
}

// requestHistory is requestCurrent of a table that has history alone.
func (k *keeper) requestHistory(ctx context.Context, table *catalog.Table, r fold.HistoryResult) error {
	if k.layers.Current != nil || !k.mayRequest() {
		return nil
	}
	var rows []change.Ref
	for i := range r.Write {
		if r.Write[i].To == fold.Open {
			rows = append(rows, r.Write[i].Image)
		}
	}
	return k.request(ctx, table, rows)
}

func (k *keeper) mayRequest() bool {
	return k.lacks.rereads != nil && k.bronze.Snapshot != nil && k.bronze.Snapshot.Done
}

func (k *keeper) request(ctx context.Context, table *catalog.Table, images []change.Ref) error {
	var keys [][]string
	var names []string
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		id, err := k.lacks.rereads.Request(ctx, table, keys)
		if errors.Is(err, ErrNoReread) {
			keys, names = nil, nil
			return nil
		}
		if err != nil {
			return err
		}
		if k.lacks.asked == nil {
			k.lacks.asked = map[string]int64{}
		}
		for _, name := range names {
			k.lacks.asked[name] = id
		}
		keys, names = nil, nil
		return nil
	}
	for _, image := range images {
		if !lacksValue(image) {
			continue
		}
		key, err := image.Rows.AppendKey(nil, image.Row)
		if err != nil {
			return err
		}
		if _, asked := k.lacks.asked[string(key)]; asked {
			continue
		}
		keys, names = append(keys, keyTexts(image)), append(names, string(key))
		if len(keys) == mostLacking {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

func lacksValue(r change.Ref) bool {
	for col := range r.Rows.Schema().Columns {
		if r.Rows.Mark(r.Row, col) == change.Unavailable {
			return true
		}
	}
	return false
}

// keyTexts prints a row's key as the lake shows it.
func keyTexts(r change.Ref) []string {
	schema := r.Rows.Schema()
	out := make([]string, len(schema.Key))
	for i, col := range schema.Key {
		typ := schema.Columns[col].Type
		if typ.Fixed() {
			out[i] = string(typemap.AppendText(nil, typ, r.Rows.Fixed(r.Row, col), nil))
		} else {
			out[i] = string(typemap.AppendText(nil, typ, 0, r.Rows.Bytes(r.Row, col)))
		}
	}
	return out
}
