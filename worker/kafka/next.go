package kafka

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// stretch is records of one partition that were fetched and not read.
type stretch struct {
	table     *table
	partition *partition
	records   []*kgo.Record
	end       int64 // of the partition when they were fetched
}

// mostPolled bounds how many records are taken from the client at once.
const mostPolled = 20_000

// quiet is for how long nothing must have come before a transaction counts as over
// though its partition may not be at its end.
const quiet = 2 * time.Second

// Next implements pipeline.Source.
func (s *Source) Next(ctx context.Context) (pipeline.Slice, error) {
	var out pipeline.Slice
	s.full = false
	wait, cancel := context.WithTimeout(ctx, s.cfg.Limits.NextWait)
	defer cancel()
	for {
		if err := s.take(ctx, &out); err != nil {
			return out, err
		}
		if len(s.pending) == 0 {
			s.poll(wait, &out)
		}
		waits, err := s.readAll(ctx, &out)
		if err == nil {
			err = s.handOver(&out)
		}
		if err == nil {
			err = s.prove(&out)
		}
		if err == nil {
			err = s.readAgain(&out)
		}
		if err != nil {
			return out, err
		}
		if len(out.Batches)+len(out.Faults) > 0 || out.Through > s.told || wait.Err() != nil {
			s.told = max(s.told, out.Through)
			return out, ctx.Err()
		}
		if waits {
			select {
			case <-wait.Done():
			case <-time.After(s.cfg.Limits.NextWait / 5):
			}
		}
	}
}

// take takes in what the keeper of topics found out.
func (s *Source) take(ctx context.Context, out *pipeline.Slice) error {
	s.mu.Lock()
	arrivals, faults, err := s.arrivals, s.faults, s.failed
	s.arrivals, s.faults = nil, nil
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, a := range arrivals {
		if !a.table.stopped.Load() {
			if err := s.arrive(a); err != nil {
				return err
			}
		}
	}
	for _, f := range faults {
		if t := s.byName[f.Table]; t != nil && !t.stopped.Load() {
			if err := s.end(ctx, t, nil, f, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrive begins the reading of a table's topic.
func (s *Source) arrive(a arrival) error {
	t := a.table
	if err := t.begin(a); err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for _, p := range a.offsets {
		from[p.Partition] = kgo.NewOffset().At(p.Next)
	}
	s.byTopic[t.topic] = t
	if len(from) > 0 {
		s.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{t.topic: from})
	}
	return nil
}

// end stops a table: what came before goes out with the fault.
func (s *Source) end(ctx context.Context, t *table, p *partition, f pipeline.Fault, out *pipeline.Slice) error {
	if t.began && !t.heartbeat {
		if err := t.dropHalf(); err != nil {
			return err
		}
		f.From = t.passed(p)
		b, err := t.seal(false)
		if err != nil {
			return err
		}
		if b != nil {
			out.Batches = append(out.Batches, b)
		}
	}
	if f.State == catalog.Gap {
		s.note(context.WithoutCancel(ctx), t, f.Err)
	}
	out.Faults = append(out.Faults, f)
	s.Drop(t.name)
	t.build = nil
	return nil
}

// poll fetches records, until the context ends or there is news.
func (s *Source) poll(ctx context.Context, out *pipeline.Slice) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer func() { cancel(); <-done }()
	go func() {
		defer close(done)
		select {
		case <-s.news:
			cancel()
		case <-ctx.Done():
		}
	}()
	fetches := s.client.PollRecords(ctx, mostPolled)
	first := len(s.pending)
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		t := s.byTopic[f.Topic]
		if t == nil || t.stopped.Load() {
			return
		}
		p := t.parts[f.Partition]
		if f.Err != nil {
			s.refusedFetch(ctx, t, p, f.Err, out)
			return
		}
		if p == nil {
			return
		}
		end := f.HighWatermark
		if f.LastStableOffset >= 0 {
			end = min(end, f.LastStableOffset)
		}
		s.pending = append(s.pending, stretch{t, p, f.Records, end})
	})
	s.pending = append(s.pending[:first], mingled(s.pending[first:])...)
}

// mingled puts what was fetched of a table's several partitions into the order in which
// it was written, as far as the records' times tell, so that little comes late. The
// order within a partition stays.
func mingled(fetched []stretch) []stretch {
	out := make([]stretch, 0, len(fetched))
	of := map[*table][]stretch{}
	for _, st := range fetched {
		if st.table.several() {
			of[st.table] = append(of[st.table], st)
		} else {
			out = append(out, st)
		}
	}
	for _, lanes := range of {
		var all []stretch // of one record each, to begin with
		var at []int64
		for _, lane := range lanes {
			newest := int64(0)
			for i, rec := range lane.records {
				newest = max(newest, rec.Timestamp.UnixMilli())
				all, at = append(all, stretch{lane.table, lane.partition, lane.records[i : i+1 : i+1], lane.end}), append(at, newest)
			}
		}
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(at[i], at[j]) })
		for _, i := range order {
			if n := len(out); n > 0 && out[n-1].table == all[i].table && out[n-1].partition == all[i].partition {
				out[n-1].records = append(out[n-1].records, all[i].records...)
			} else {
				out = append(out, all[i])
			}
		}
	}
	return out
}

// refusedFetch judges why a partition could not be fetched.
func (s *Source) refusedFetch(ctx context.Context, t *table, p *partition, err error, out *pipeline.Slice) {
	f := pipeline.Fault{Table: t.name, State: catalog.Gap, Keep: true}
	lost, isLost := errors.AsType[*kgo.ErrDataLoss](err)
	_, isLarge := errors.AsType[*kgo.ErrDecompressTooLarge](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return
	case errors.Is(err, kerr.OffsetOutOfRange) && p != nil:
		f.Err = gapf(t.cfg, "offset %d of topic %s, partition %d, was removed by retention before it was read", p.next, t.topic, p.number)
	case isLost:
		f.Err = gapf(t.cfg, "topic %s, partition %d, has lost records: it was read up to offset %d and set back to %d", t.topic, lost.Partition, lost.ConsumedTo, lost.ResetTo)
	case isLarge:
		f.State = catalog.Quarantined
		f.Err = catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "find out what writes such records", "topic %s: %w", t.topic, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		f.State = catalog.Quarantined
		f.Err = catalog.Errorf(catalog.Denied, catalog.CodeKafkaDenied, "allow the client to read the topic", "the brokers do not let topic %s be read", t.topic)
	default:
		// What it means is for the keeper to say, which looks at the topics.
		s.waiting(ctx, "a topic cannot be read", err)
		return
	}
	f.Err.At = t.cfg.ID()
	if t.heartbeat {
		s.fault(t, f.State, f.Err)
		return
	}
	if err := s.end(ctx, t, p, f, out); err != nil {
		s.fail(err)
	}
}

// readAll reads what was fetched, until the slice is full. It reports whether all that
// is left waits for something.
func (s *Source) readAll(ctx context.Context, out *pipeline.Slice) (waits bool, err error) {
	left := s.pending[:0]
	for i, st := range s.pending {
		if s.full || ctx.Err() != nil {
			left = append(left, s.pending[i:]...)
			break
		}
		switch err := s.readStretch(ctx, &st, out); {
		case errors.Is(err, errWaits):
			waits = true
			left = append(left, st)
		case err != nil:
			return false, err
		case len(st.records) > 0:
			left = append(left, st)
		}
	}
	clear(s.pending[len(left):])
	s.pending = left
	return waits, nil
}

func (s *Source) readStretch(ctx context.Context, st *stretch, out *pipeline.Slice) error {
	t, p := st.table, st.partition
	for len(st.records) > 0 && !s.full {
		if t.stopped.Load() {
			st.records = nil
			return nil
		}
		rec := st.records[0]
		if rec.Offset >= p.next {
			t.readAt = s.cfg.Clock()
			switch err := s.read(ctx, t, p, rec, out); {
			case errors.Is(err, errWaits):
				return err
			case err != nil && catalog.Public(err).Code == catalog.CodeInternal:
				return err
			case err != nil:
				st.records = nil
				f := pipeline.Fault{Table: t.name, State: catalog.Quarantined, Err: catalog.Public(err), Keep: true}
				if f.Err.Code == catalog.CodeGap {
					f.State = catalog.Gap
				}
				return s.end(ctx, t, p, f, out)
			}
		}
		st.records = st.records[1:]
	}
	if len(st.records) == 0 {
		p.atEnd = p.next >= st.end
	}
	return nil
}

// handOver hands over what ends where a transaction ends: the topic has no more. What
// may go on waits, as long as more comes and it is not too much.
func (s *Source) handOver(out *pipeline.Slice) error {
	held := 0
	var holding []*table
	for _, t := range s.byTopic {
		b := t.build
		if b == nil || !b.moved || t.half != nil || t.stopped.Load() || given(out, t) {
			continue
		}
		still := s.cfg.Clock().Sub(t.readAt) >= quiet
		atEnd := (t.atEnd() || still) && !s.fetched(t)
		if !atEnd && !still {
			held += b.size()
			holding = append(holding, t)
			continue
		}
		if err := s.give(t, atEnd, out); err != nil {
			return err
		}
	}
	if held > s.cfg.Limits.HeldBytes {
		for _, t := range holding {
			if err := s.give(t, false, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Source) give(t *table, whole bool, out *pipeline.Slice) error {
	b, err := t.seal(whole)
	if b != nil {
		out.Batches = append(out.Batches, b)
	}
	return err
}

// fetched reports whether records of the table are there to be read.
func (s *Source) fetched(t *table) bool {
	return slices.ContainsFunc(s.pending, func(st stretch) bool { return st.table == t })
}

func given(out *pipeline.Slice, t *table) bool {
	return slices.ContainsFunc(out.Batches, func(b *change.Batch) bool { return b.Table == t.cfg })
}

// prove finds out up to where the source is known to have been read, and says so.
func (s *Source) prove(out *pipeline.Slice) error {
	p := &s.progress
	if p.ask(s.cfg.Clock()) {
		select {
		case s.ask <- struct{}{}:
		default:
			p.answer(nil)
		}
	}
	select {
	case e := <-s.answers:
		p.answer(e)
	default:
	}
	if p.ends != nil && s.readUpTo(p.ends) {
		for _, t := range s.byTopic {
			if t.build != nil && t.build.moved && !t.stopped.Load() {
				if err := s.give(t, t.atEnd() && !s.fetched(t), out); err != nil {
					return err
				}
			}
		}
		p.proved()
		if err := s.emptyTables(out); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.newest = max(s.newest, p.newest.through)
	s.mu.Unlock()
	out.Through, out.ReadAt = p.proven.through, micros(p.proven.at)
	return nil
}

// readUpTo reports whether every table was read up to the ends of its topic.
func (s *Source) readUpTo(e ends) bool {
	for _, t := range s.tables {
		if t.heartbeat || t.stopped.Load() {
			continue
		}
		if t.half != nil {
			return false
		}
		if !t.readTo(e[t.topic]) {
			return false
		}
	}
	return true
}

// emptyTables tells of the tables that had no row to read: the connector streams, so
// that its snapshot is over, and nothing of them has come.
func (s *Source) emptyTables(out *pipeline.Slice) error {
	for _, t := range s.byTopic {
		if t.heartbeat || t.stopped.Load() || t.snapshot != nil {
			continue
		}
		t.snapshot = &catalog.SnapshotProgress{Generation: 1, Done: true, StartedAt: s.progress.proven.at}
		b := t.into()
		b.moved, b.told = true, true
		if err := s.give(t, true, out); err != nil {
			return err
		}
	}
	return nil
}
