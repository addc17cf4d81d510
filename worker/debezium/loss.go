package debezium

import (
	"fmt"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/change"
)

// Debezium notes a place and not a record: a task that is stopped between two records that
// share a place goes on behind it, and the rest never comes (docs/debezium-order.md). In a
// partition it looks like this: a run ends at a place, and the next one does not begin at
// or below it. It looks the same when nothing is missing, which is the rule, so that what
// stands at that place decides:
//
//   - The first half of a key move alone: its second half is missing, for certain.
//   - Rows of a COPY: there may have been more. When the run is known to have gone on to a
//     later transaction, in whatever topic, there were none.
//   - Anything else has a place of its own.

// lacks is what may be missing at the place of a lane's newest streamed change, should
// its run end there.
type lacks uint8

const (
	lacksNothing lacks = iota
	lacksHalf          // the second half of a key move
	lacksRows          // further rows of a COPY
)

// lacking returns what may follow a change at its place. A page of a COPY may hold one
// row: what tells it is the pages before.
func (l *Lane) lacking(e *Event) lacks {
	switch {
	case e.MovedTo:
		return lacksHalf
	case e.Op != change.Create || e.MovedFrom:
		return lacksNothing
	case l.shares(e), l.Lacks == lacksRows && l.Run == e.Run && l.Sequence == e.Sequence && l.TxID == e.TxID:
		return lacksRows
	}
	return lacksNothing
}

// Loss is where changes are, or may be, missing: behind the last that a run of the
// connector's task has sent, at that same place.
type Loss struct {
	// Half says that the last was the first half of a key move: in a topic of one
	// partition the second is missing. Otherwise rows of a COPY may be.
	Half     bool
	Run      RunID // that ended
	Next     RunID // that began
	Sequence catalog.LSN
	LSN      catalog.LSN
	TxID     uint64
	Rows     int // how many changes of the place have come
}

// Loss looks, before a change is placed, at whether its run leaves out what the run before
// did not send; nil when it does not.
func (o *Order) Loss(e *Event, partition int32) *Loss {
	l, ok := o.Lanes[partition]
	if !ok || e.Snapshot != Streamed || l.Lacks == lacksNothing || l.Generation != o.Generation ||
		e.Run == l.Run || e.Run == (RunID{}) || l.Run == (RunID{}) {
		return nil
	}
	was, is := o.Newest(partition), l.commit(e)
	if is < was || is == was && e.LSN <= l.LSN {
		return nil // the place comes again, whole
	}
	return &Loss{Half: l.Lacks == lacksHalf, Run: l.Run, Next: e.Run, Sequence: l.Sequence, LSN: l.LSN, TxID: l.TxID, Rows: l.Same}
}

// PassBy notes that somebody has a record of a partition passed by: what was lacking may
// have been in it.
func (o *Order) PassBy(partition int32) {
	if l, ok := o.Lanes[partition]; ok && l.Lacks != lacksNothing {
		l.Lacks = lacksNothing
		o.Lanes[partition] = l
	}
}

// Place says where, in the terms of a source block.
func (l *Loss) Place() string {
	return fmt.Sprintf("lsn %s, sequence %s, of transaction %d", l.LSN, l.Sequence, l.TxID)
}

// String says what the topic shows.
func (l *Loss) String() string {
	what := "in the midst of a key move"
	if !l.Half {
		what = fmt.Sprintf("with row %d of those that one COPY has put there", l.Rows)
	}
	return fmt.Sprintf("the connector's run %s ended at %s, %s, and run %s goes on behind it", l.Run, l.Place(), what, l.Next)
}
