package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// errWaits is a record that cannot be read now and may be later.
var errWaits = errors.New("the record waits")

// read takes one record in. The error is errWaits, or a *catalog.Error that stops the
// table: nothing of the record was taken in then.
func (s *Source) read(ctx context.Context, t *table, p *partition, rec *kgo.Record, out *pipeline.Slice) error {
	err := s.readRecord(ctx, t, p, rec, out)
	if err == nil || errors.Is(err, errWaits) || catalog.Public(err).Code == catalog.CodeInternal {
		return err
	}
	name := Record{rec.Topic, rec.Partition, rec.Offset}
	if t.heartbeat { // the next one will do
		s.waiting(ctx, "a heartbeat cannot be read", undecodable(t.cfg, name, err))
		t.pass(p, rec.Offset)
		return nil
	}
	if catalog.Public(err).Code == catalog.CodeGap { // to pass the record by brings nothing back
		return gapf(t.cfg, "%s: %s", name, catalog.Public(err).Message)
	}
	skip, ok := s.cfg.Skips[name]
	if !ok {
		return undecodable(t.cfg, name, err)
	}
	why := catalog.Public(err)
	s.cfg.Logger.WarnContext(ctx, "a record that cannot be read is passed by, as lakeweir skip says", "table", t.cfg.ID(), "topic", name.Topic,
		"partition", name.Partition, "offset", name.Offset, "by", skip.By, "reason", skip.Reason, "code", why.Code, "why", why.Message)
	if s.cfg.Skipped != nil {
		s.cfg.Skipped(t.name, name, skip, why)
	}
	t.order.PassBy(p.number)
	t.pass(p, rec.Offset)
	return nil
}

// readRecord is read without the place in its error.
func (s *Source) readRecord(ctx context.Context, t *table, p *partition, rec *kgo.Record, out *pipeline.Slice) error {
	if rec.Attrs.IsControl() {
		t.pass(p, rec.Offset)
		return nil
	}
	b := t.into()
	s.record = debezium.Record{Topic: rec.Topic, Partition: rec.Partition, Offset: rec.Offset, Headers: s.record.Headers[:0], Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		s.record.Headers = append(s.record.Headers, debezium.Header{Key: h.Key, Value: h.Value})
	}
	e, err := t.decoder.Decode(ctx, &s.record, b.rows)
	if err != nil {
		if catalog.KindOf(err) == catalog.Unavailable || ctx.Err() != nil {
			s.waiting(ctx, "a record cannot be read yet", err)
			return errWaits
		}
		return err
	}
	if !e.Kind.IsChange() {
		t.pass(p, rec.Offset)
		return nil
	}
	s.progress.note(&e, t.heartbeat, t.readAt)
	s.sent.note(&e)
	if t.heartbeat {
		t.build = nil
		t.pass(p, rec.Offset)
		return nil
	}
	if e.Kind == debezium.Truncate && !t.cfg.ApplyTruncates {
		return catalog.Errorf(catalog.Denied, catalog.CodeTruncate,
			"set apply_truncates: true to let it empty the lake's tables too, then start the worker anew",
			"the table was truncated and its configuration says apply_truncates: false")
	}
	loss := t.order.Loss(&e, p.number)
	if loss != nil && loss.Half && !t.several() {
		return halfLost(loss)
	}
	if b, err = s.cutBefore(t, p, &e, out); err != nil {
		return err
	}
	if err := t.add(b, p, &e, rec.Offset); err != nil {
		return err
	}
	if loss != nil && !s.sent.beyond(loss) {
		s.suspect(ctx, t, Record{rec.Topic, rec.Partition, rec.Offset}, loss)
	}
	return nil
}

// pass goes past a record that is no change.
func (t *table) pass(p *partition, offset int64) {
	p.next = offset + 1
	if !t.heartbeat {
		t.into().moved = true
	}
}

// cutBefore hands over what was collected before an event, when that is enough and the
// event begins another transaction, or far too much and it does not. The event's rows
// are in the builder that it returns.
func (s *Source) cutBefore(t *table, p *partition, e *debezium.Event, out *pipeline.Slice) (*builder, error) {
	b := t.build
	n, size := len(b.changes), b.size()
	begins := e.Snapshot != debezium.Streamed || t.order.Commit(e, p.number) != p.commit
	l := s.cfg.Limits
	full := n >= l.BatchRows || size >= l.BatchBytes
	tooLarge := n >= 2*l.BatchRows || size >= 2*l.BatchBytes
	enough := full && begins || tooLarge
	if n == 0 || !enough || t.half != nil && e.MovedFrom {
		return b, nil
	}
	batch, err := t.seal(begins && !t.several())
	if err != nil {
		return nil, err
	}
	out.Batches = append(out.Batches, batch)
	s.full = true
	fresh := t.into()
	for _, row := range []*int{&e.Before, &e.After, &e.Other} {
		if *row >= 0 {
			*row = fresh.rows.CopyRow(b.rows, *row)
		}
	}
	return fresh, nil
}

// add places an event and takes it in as a change. Its error leaves the table as it was.
func (t *table) add(b *builder, p *partition, e *debezium.Event, offset int64) error {
	c := change.Change{
		Op: e.Op, Before: e.Before, After: e.After, Other: e.Other, Partition: p.number, Offset: offset,
		LSN: e.LSN, TxID: e.TxID, CommitTime: e.CommitTime,
	}
	if e.Kind == debezium.Truncate {
		c.Op = change.Truncate
	} else if err := t.keys(b, &c, e); err != nil {
		return err
	}
	generation := t.order.Generation
	var before string
	if e.MovedTo && !t.several() {
		var err error
		if before, err = t.orderText(); err != nil {
			return err
		}
	}
	position, err := t.order.Place(e, p.number, offset)
	if err != nil {
		return err
	}
	c.Position = position
	if generation > 0 && t.order.Generation > generation && !t.several() {
		// What was deleted before the table was read anew stands in no event: what is
		// not read again is not there any more. Of several partitions it is not certain
		// which changes came before.
		b.changes = append(b.changes, change.Change{
			Op: change.Truncate, Before: -1, After: -1, Other: -1, Partition: p.number, Offset: offset,
			Position: catalog.Position{Generation: t.order.Generation}, LSN: e.LSN, CommitTime: e.CommitTime,
		})
	}
	if e.MovedTo && !t.several() {
		t.half = &half{change: len(b.changes), partition: p, offset: offset, order: before}
	} else {
		t.half = nil
	}
	b.changes = append(b.changes, c)
	if t.reading != nil {
		t.reading.note(b, &c, e.Snapshot)
	}
	b.moved = true
	p.next = offset + 1
	if e.Snapshot == debezium.Streamed {
		p.commit = position.Commit
	}
	t.count(b, e, position.Generation)
	return nil
}

// keys fills in a change's keys. The halves of a key move name each other; what the
// header does not tell is in the other half, which is next to it.
func (t *table) keys(b *builder, c *change.Change, e *debezium.Event) error {
	row := c.After
	if c.Op == change.Delete {
		row = c.Before
	}
	var err error
	if c.Key, err = b.key(row); err != nil {
		return t.keyError(b, c, row, err)
	}
	if len(t.schema.Key) == 0 {
		return nil
	}
	if c.Op == change.Update && c.Before >= 0 {
		if b.keys.Differs(b.rows, c.Before, c.Key) {
			return catalog.Errorf(catalog.Invalid, catalog.CodeIdentityChange,
				"have the connector key the table's records by primary_key (message.key.columns), so that it tells a key that changes",
				"an update changes the configured key, which is not the key of the topic's records")
		}
	}
	if h := t.half; e.MovedFrom && h != nil && h.change == len(b.changes)-1 {
		first := &b.changes[h.change]
		if c.Other < 0 {
			c.Other = first.Before
		}
		if first.Other < 0 {
			first.Other, first.OtherKey = c.After, c.Key
		}
	}
	if c.Other >= 0 {
		if c.OtherKey, err = b.key(c.Other); err != nil {
			return t.keyError(b, c, c.Other, err)
		}
	}
	return nil
}

func (t *table) keyError(b *builder, c *change.Change, row int, err error) *catalog.Error {
	var column catalog.Column
	for _, col := range t.schema.Key {
		if !b.rows.HasValue(row, col) {
			column = t.schema.Columns[col]
			break
		}
	}
	switch {
	case errors.Is(err, change.ErrKeyNull):
		return catalog.Errorf(catalog.Invalid, catalog.CodeKeyNull,
			"choose a primary_key whose columns always have a value, then read the table anew",
			"a change has no value in key column %s", column.Name)
	case errors.Is(err, change.ErrKeyUnfit):
		return catalog.Errorf(catalog.Invalid, catalog.CodeKeyUnfit,
			"choose a primary_key whose values all fit, then read the table anew; docs/reference/types.md lists what does not fit",
			"a change has a value in key column %s (%s) that the lake's %s cannot hold", column.Name, column.Source.Name, column.Type)
	}
	return catalog.Errorf(catalog.Invalid, catalog.CodeKeyMissing,
		"choose as primary_key what the replica identity carries, or ALTER TABLE … REPLICA IDENTITY FULL",
		"a change (%c) does not carry key column %s: the replica identity leaves it out", c.Op, column.Name)
}

// count moves the snapshot's progress: reads of the connector's own snapshot are
// counted, and it is over with its last row, or when anything else comes.
func (t *table) count(b *builder, e *debezium.Event, generation uint32) {
	s := t.snapshot
	switch {
	case s == nil:
		s = &catalog.SnapshotProgress{Generation: max(generation, 1), StartedAt: e.CommitTime}
	case generation < s.Generation:
		return
	case generation > s.Generation:
		*s = catalog.SnapshotProgress{Generation: generation, StartedAt: e.CommitTime}
	}
	switch e.Snapshot {
	case debezium.Initial, debezium.InitialLast:
		s.Rows++
		s.Done = s.Done || e.Snapshot == debezium.InitialLast
	case debezium.Streamed, debezium.Incremental:
		if s.Done {
			return
		}
		s.Done = true
	}
	t.snapshot, b.told = s, true
}
