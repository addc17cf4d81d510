package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/catalog/kafkaclient"
	"github.com/lakeweir/lakeweir/worker/debezium"
)

// arrival is what Next needs to begin with a table.
type arrival struct {
	table   *table
	schema  *catalog.Schema
	epoch   catalog.Epoch
	decoder *debezium.Decoder
	id      string
	offsets []catalog.PartitionOffset // none: the topic does not exist yet
	now     extent                    // of the topic
}

// begin takes an arrival in.
func (t *table) begin(a arrival) error {
	first := !t.began
	t.began, t.id, t.schema, t.epoch, t.decoder = true, a.id, a.schema, a.epoch, a.decoder
	t.parts = map[int32]*partition{}
	if had := t.resume.Offsets; first && had != nil && had.Order != "" {
		if err := json.Unmarshal([]byte(had.Order), &t.order); err != nil {
			return fmt.Errorf("read the order of %s: %w", t.cfg.ID(), err)
		}
	}
	if first {
		t.high = t.resume.Cursor.Position
		if t.resume.Snapshot != nil {
			s := *t.resume.Snapshot
			t.snapshot = &s
		}
	}
	for _, o := range a.offsets {
		p := &partition{number: o.Partition, next: o.Next, atEnd: o.Next >= a.now.partitions[o.Partition].end}
		p.commit = t.order.Newest(o.Partition)
		t.parts[o.Partition] = p
	}
	return nil
}

// gone is how often in a row a topic that was read must not be there before it counts
// as gone: a broker that has just started does not know every topic.
const gone = 3

// keep looks after the topics until the context ends: finds out where to begin with
// tables, whether the topics are still those that were read, and where they end.
func (s *Source) keep(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Limits.RetryEvery)
	defer tick.Stop()
	checked := s.cfg.Clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.ask:
			e, err := s.ends(ctx)
			if err != nil {
				s.unable(ctx, "the topics' ends cannot be had", err)
			}
			select {
			case s.answers <- e:
			case <-ctx.Done():
			}
			continue
		case <-tick.C:
		}
		s.place(ctx)
		if now := s.cfg.Clock(); now.Sub(checked) >= s.cfg.Limits.CheckEvery {
			checked = now
			s.check(ctx)
			s.commit(ctx)
		}
	}
}

// unable notes that something could not be done: it is tried again, unless the brokers
// refuse the client.
func (s *Source) unable(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	if e := kafkaclient.Refused(s.cfg.Source, err); e != nil {
		s.fail(e)
		return
	}
	s.waiting(ctx, what, err)
}

// extents returns what each of the topics has now; those of which it cannot be said are
// left out.
func (s *Source) extents(ctx context.Context, topics []string) (map[string]extent, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	details, err := s.admin.ListTopics(ctx, topics...)
	if err != nil {
		return nil, err
	}
	out := map[string]extent{}
	var there []string
	for _, topic := range topics {
		d, ok := details[topic]
		switch {
		case !ok, errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			out[topic] = extent{missing: true}
		case errors.Is(d.Err, kerr.TopicAuthorizationFailed):
			out[topic] = extent{denied: true}
		case d.Err == nil:
			e := extent{partitions: map[int32]span{}}
			if d.ID != (kadm.TopicID{}) {
				e.id = d.ID.String()
			}
			for n := range d.Partitions {
				e.partitions[n] = span{}
			}
			out[topic] = e
			there = append(there, topic)
		}
	}
	s.heard()
	if len(there) == 0 {
		return out, nil
	}
	starts, err := s.admin.ListStartOffsets(ctx, there...)
	if err != nil {
		return nil, err
	}
	stops, err := s.admin.ListEndOffsets(ctx, there...)
	if err != nil {
		return nil, err
	}
	for _, topic := range there {
		for n := range out[topic].partitions {
			lo, ok1 := starts.Lookup(topic, n)
			hi, ok2 := stops.Lookup(topic, n)
			if !ok1 || !ok2 || lo.Err != nil || hi.Err != nil {
				delete(out, topic)
				break
			}
			out[topic].partitions[n] = span{lo.Offset, hi.Offset}
		}
	}
	return out, nil
}

// ends returns where the topics of all tables end for those who read what is committed.
func (s *Source) ends(ctx context.Context) (ends, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	var topics []string
	for _, t := range s.tables {
		if !t.heartbeat && !t.stopped.Load() {
			topics = append(topics, t.topic)
		}
	}
	if len(topics) == 0 {
		return ends{}, nil
	}
	listed, err := s.admin.ListCommittedOffsets(ctx, topics...)
	if err != nil {
		return nil, err
	}
	out := ends{}
	for topic, partitions := range listed {
		out[topic] = map[int32]int64{}
		for n, o := range partitions {
			if errors.Is(o.Err, kerr.UnknownTopicOrPartition) {
				continue
			}
			if o.Err != nil {
				return nil, o.Err
			}
			out[topic][n] = o.Offset
		}
	}
	return out, nil
}

// place finds out where to begin with the tables that have not begun.
func (s *Source) place(ctx context.Context) {
	var waiting []*table
	var topics []string
	for _, t := range s.tables {
		if !t.placed && !t.stopped.Load() {
			waiting, topics = append(waiting, t), append(topics, t.topic)
		}
	}
	if len(waiting) == 0 {
		return
	}
	now, err := s.extents(ctx, topics)
	if err != nil {
		s.unable(ctx, "the brokers cannot be reached", err)
		return
	}
	waiting = slices.DeleteFunc(waiting, func(t *table) bool { return !s.ready(t, now) })
	if len(waiting) == 0 {
		return
	}
	described, ok := s.describe(ctx, waiting)
	if !ok {
		return
	}
	for _, t := range waiting {
		a, err := s.prepare(ctx, t, described, now[t.topic])
		if err != nil {
			t.placed = true
			state := catalog.Quarantined
			if err.Code == catalog.CodeGap {
				state = catalog.Gap
			}
			s.fault(t, state, err)
			continue
		}
		t.placed = len(a.offsets) > 0
		t.expected = true
		if e := now[t.topic]; t.placed {
			t.known = &e
		}
		s.mu.Lock()
		s.arrivals = append(s.arrivals, a)
		s.mu.Unlock()
		s.wake()
	}
}

// ready reports whether it can be decided where to begin with a table.
func (s *Source) ready(t *table, now map[string]extent) bool {
	e, ok := now[t.topic]
	switch {
	case !ok:
		return false
	case !e.missing:
		t.missing = 0
		return true
	case t.heartbeat:
		return false
	case t.resume.Offsets != nil && len(t.resume.Offsets.Partitions) > 0:
		t.missing++
		return t.missing >= gone
	}
	return !t.expected // it is known already that the topic is to come
}

// describe asks the source for the tables; false when it does not answer.
func (s *Source) describe(ctx context.Context, tables []*table) (Description, bool) {
	if s.cfg.Describe == nil {
		return Description{}, true
	}
	var asked []*catalog.Table
	for _, t := range tables {
		asked = append(asked, t.cfg)
	}
	d, err := s.cfg.Describe(ctx, asked)
	if err == nil {
		return d, true
	}
	if catalog.KindOf(err) == catalog.Unavailable {
		s.waiting(ctx, "the source does not describe its tables", err)
	} else if ctx.Err() == nil {
		s.fail(err)
	}
	return d, false
}

// prepare makes what Next needs to begin with a table.
func (s *Source) prepare(ctx context.Context, t *table, d Description, now extent) (arrival, *catalog.Error) {
	a := arrival{table: t, id: now.id, epoch: d.Epoch, now: now}
	if now.denied {
		return a, catalog.Errorf(catalog.Denied, catalog.CodeKafkaDenied, "allow the client to describe and read the topic", "the brokers do not let topic %s be read", t.topic)
	}
	was := t.resume.Cursor.Epoch
	switch {
	case a.epoch.System == "":
		a.epoch = was
	case was.System != "" && was.System != a.epoch.System:
		return a, gapf(t.cfg, "another cluster answers: system %s instead of %s", a.epoch.System, was.System)
	}
	var gap *catalog.Error
	if t.heartbeat {
		a.offsets = newestOf(now)
	} else if a.offsets, gap = begin(t.cfg, t.topic, t.resume.Offsets, now); gap != nil {
		return a, gap
	}
	if gap := s.noted(ctx, t); gap != nil {
		return a, gap
	}
	described, found := d.Tables[t.name]
	schema, err := chooseSchema(t, described, found, s.cfg.Describe != nil)
	if err != nil {
		return a, err
	}
	a.schema = schema
	dcfg, err := decoderConfig(s.cfg.Source.Connector)
	if err != nil {
		return a, err
	}
	dcfg.Registry = s.cfg.Schemas
	decoder, derr := debezium.New(described.with(dcfg, t.cfg, schema, d.Monetary))
	if derr != nil {
		return a, catalog.Public(derr)
	}
	a.decoder = decoder
	return a, nil
}

// noted returns a gap that was found earlier and that nothing has healed. A table of
// which the lake has nothing any more begins anew.
func (s *Source) noted(ctx context.Context, t *table) *catalog.Error {
	if s.cfg.Notes == nil || t.heartbeat {
		return nil
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	var err error
	if t.resume.Offsets == nil && t.resume.Cursor.IsZero() {
		err = s.cfg.Notes.ForgetGap(ctx, t.name)
	} else {
		var gap *catalog.Error
		var generation uint32
		if gap, generation, err = s.cfg.Notes.ReadGap(ctx, t.name); gap != nil && (t.resume.Snapshot == nil || t.resume.Snapshot.Generation <= generation) {
			return gap
		}
	}
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "it is not known whether a gap was found earlier", "table", t.cfg.ID(), "error", err)
	}
	return nil
}

// note keeps a gap beyond the run.
func (s *Source) note(ctx context.Context, t *table, gap *catalog.Error) {
	if s.cfg.Notes == nil {
		return
	}
	generation := uint32(1)
	if t.snapshot != nil {
		generation = t.snapshot.Generation
	} else if t.resume.Snapshot != nil {
		generation = t.resume.Snapshot.Generation
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	if err := s.cfg.Notes.NoteGap(ctx, t.name, generation, gap); err != nil {
		s.cfg.Logger.WarnContext(ctx, "a gap is not noted beyond this run", "table", t.cfg.ID(), "error", err)
	}
}

// newestOf is where the newest record of each partition stands.
func newestOf(now extent) []catalog.PartitionOffset {
	var out []catalog.PartitionOffset
	for n, s := range now.partitions {
		out = append(out, catalog.PartitionOffset{Partition: n, Next: max(s.start, s.end-1)})
	}
	return out
}

// check looks whether the topics are still those that are being read.
func (s *Source) check(ctx context.Context) {
	var reading []*table
	var topics []string
	for _, t := range s.tables {
		if t.known != nil && !t.heartbeat && !t.stopped.Load() {
			reading, topics = append(reading, t), append(topics, t.topic)
		}
	}
	if len(reading) == 0 {
		return
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	details, err := s.admin.ListTopics(ctx, topics...)
	if err != nil {
		s.unable(ctx, "the brokers cannot be reached", err)
		return
	}
	s.heard()
	for _, t := range reading {
		d, ok := details[t.topic]
		now := extent{partitions: map[int32]span{}}
		switch {
		case !ok, errors.Is(d.Err, kerr.UnknownTopicOrPartition):
			now.missing = true
		case d.Err != nil:
			continue
		case d.ID != (kadm.TopicID{}):
			now.id = d.ID.String()
		}
		if t.missing++; now.missing && t.missing < gone {
			continue
		}
		if !now.missing {
			t.missing = 0
		}
		for n := range d.Partitions {
			now.partitions[n] = span{}
		}
		had := &catalog.TopicOffsets{Topic: t.topic, TopicID: t.known.id}
		for n := range t.known.partitions {
			had.Partitions = append(had.Partitions, catalog.PartitionOffset{Partition: n})
		}
		if gap := remade(t.cfg, t.topic, had, now); gap != nil {
			t.known = nil
			s.fault(t, catalog.Gap, gap)
		}
	}
}

// commit tells the consumer group how far bronze holds the topics. Nobody reads by it.
func (s *Source) commit(ctx context.Context) {
	s.mu.Lock()
	offsets := kadm.Offsets{}
	for _, o := range s.saved {
		for _, p := range o.Partitions {
			offsets.AddOffset(o.Topic, p.Partition, p.Next, -1)
		}
	}
	unsaid := s.unsaid
	s.unsaid = false
	s.mu.Unlock()
	if !unsaid || len(offsets) == 0 {
		return
	}
	ctx, cancel := s.within(ctx)
	defer cancel()
	if _, err := s.admin.CommitOffsets(ctx, "lakeweir-"+s.cfg.Source.Name, offsets); err != nil && ctx.Err() == nil {
		s.cfg.Logger.DebugContext(ctx, "the consumer group is not told of the progress", "source", s.cfg.Source.Name, "error", err)
	}
}
