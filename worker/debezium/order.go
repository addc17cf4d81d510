package debezium

import (
	"maps"

	"github.com/lakeweir/lakeweir/catalog"
)

// Positions on this path, from the source block alone, so that an event that is sent
// again after a restart of the connector has the position that it had:
//
//   - A streamed change: Commit is the end of the last transaction that the connector had
//     seen whole when the change's own began to come (sequence[0], or 1 before any), which
//     tells transactions apart and rises in the order of their commits. Ordinal is the
//     distance of its LSN from there, then how many changes with the same LSN came before
//     it: the rows of one COPY share an LSN, and so do the halves of a key move.
//   - An incremental read: Commit is sequence[0] of when it was read. Ordinal is below that
//     of every streamed change of the same Commit: a transaction that was under way then
//     comes later and wins.
//   - An initial read: Commit 0, below every streamed change of its generation.
//   - A key that was asked for and that the source did not have: see Absence.
//
// An Ordinal's highest bit but one tells the first kind from the others.
const (
	streamedBit    = 1 << 62
	distanceBits   = 46
	placeBits      = 16
	samePlaces     = 1 << 10 // changes with one LSN in one partition
	maxPartitions  = 64
	partitionBits  = 6
	absentBit      = 1 << 61
	maxOffset      = absentBit>>partitionBits - 1
	initialCommit  = 0
	uncommitted    = 1 // Commit of changes from before the connector had seen a commit
	distanceOffset = 1 << (distanceBits - 1)
)

// Order gives the changes of one table their positions. It is plain state, to be kept
// with the offsets that it belongs to: an Order that is stored with the next offset of
// each partition and read back goes on as if it had never stopped. The zero value is
// that of a topic that is read from its start.
type Order struct {
	Generation uint32         `json:"generation"`        // the newest initial snapshot, from 1; 0 before the first change
	ReadLSN    catalog.LSN    `json:"readLSN,omitempty"` // where the newest initial snapshot was read; 0 before any
	Lanes      map[int32]Lane `json:"lanes,omitempty"`   // by partition
}

// Lane is what Order has to know of one partition.
type Lane struct {
	Generation uint32 `json:"generation"`         // of its newest change
	Ended      bool   `json:"ended,omitempty"`    // the generation's initial reads are over
	Numbered   bool   `json:"numbered,omitempty"` // changes from after a commit have come in this generation
	// First is the highest LSN of the generation's changes from before the connector had
	// seen a commit.
	First catalog.LSN `json:"first,omitempty"`
	Early early       `json:"early,omitzero"`
	// Sequence, LSN, TxID and Run are those of the newest streamed change, and Same is how
	// many in a row have had them.
	Sequence catalog.LSN `json:"sequence,omitempty"`
	LSN      catalog.LSN `json:"lsn,omitempty"`
	TxID     uint64      `json:"txid,omitempty"`
	Run      RunID       `json:"run,omitzero"`
	Same     int         `json:"same,omitempty"`
	Lacks    lacks       `json:"lacks,omitempty"` // what the newest streamed change may be followed by at its place
}

// Clone returns a copy that shares nothing with o.
func (o *Order) Clone() Order {
	out := *o
	out.Lanes = maps.Clone(o.Lanes)
	return out
}

// Place returns the position of a change: of an event whose Kind IsChange, in the order
// of its partition's offsets, each once. Events that a connector sends again after it
// was restarted get the positions that they had. The error is a *catalog.Error without a
// place; it leaves o as it was.
//
// With several partitions, an initial snapshot is told from the one before it by its LSN
// alone, and changes that a partition sends late from before it count to the newest one.
func (o *Order) Place(e *Event, partition int32, offset int64) (catalog.Position, error) {
	if partition < 0 || partition >= maxPartitions || offset < 0 || offset > maxOffset {
		return catalog.Position{}, unplaceable("offset %d of partition %d; a table's topic has at most %d partitions", offset, partition, maxPartitions)
	}
	lane := o.Lanes[partition]
	next := *o
	if e.Snapshot == Initial || e.Snapshot == InitialLast {
		if err := next.initial(e, &lane); err != nil {
			return catalog.Position{}, err
		}
	} else {
		next.follow(&lane)
	}
	p := catalog.Position{Generation: lane.Generation, Commit: lane.commit(e)}
	var err error
	if e.Snapshot == Streamed {
		p.Ordinal, err = lane.streamed(e, partition)
	} else {
		p.Ordinal = uint64(offset)<<partitionBits | uint64(partition)
		if e.Snapshot == Incremental {
			err = lane.incremental(e)
		}
	}
	if err != nil {
		return catalog.Position{}, err
	}
	if next.Lanes == nil {
		next.Lanes = map[int32]Lane{}
	}
	next.Lanes[partition] = lane
	*o = next
	return p, nil
}

// Commit returns the Commit of the position that Place would give a change: it tells the
// transactions of streamed changes apart, also where source.sequence does not.
func (o *Order) Commit(e *Event, partition int32) catalog.LSN {
	lane := o.Lanes[partition]
	return lane.commit(e)
}

// Absence returns the position at which the nth of some keys is known not to be there: the
// source did not have it when its log stood at a place, after everything that had committed
// before and before everything that committed since.
func (o *Order) Absence(at catalog.LSN, n int) catalog.Position {
	return catalog.Position{Generation: max(o.Generation, 1), Commit: at, Ordinal: absentBit | uint64(n)}
}

// Newest returns the Commit of a partition's newest streamed change; 0 before one.
func (o *Order) Newest(partition int32) catalog.LSN {
	l := o.Lanes[partition]
	if l.Same == 0 {
		return 0
	}
	return l.commit(&Event{Sequence: l.Sequence, TxID: l.TxID})
}

func (l *Lane) commit(e *Event) catalog.LSN {
	switch {
	case e.Snapshot == Initial || e.Snapshot == InitialLast:
		return initialCommit
	case e.Sequence == 0, e.Snapshot == Streamed && l.Early.has(e.TxID, e.Sequence):
		return uncommitted
	}
	return e.Sequence
}

// initial finds the generation of an initial read.
func (o *Order) initial(e *Event, lane *Lane) error {
	switch {
	case o.ReadLSN == 0 && o.Generation > 0 && lane.Generation == 0:
		o.ReadLSN = e.LSN // other partitions are ahead, where it is over
	case o.Generation == 0, e.LSN > o.ReadLSN, e.LSN == o.ReadLSN && lane.Generation == o.Generation && lane.Ended:
		o.Generation++
		o.ReadLSN = e.LSN
	case e.LSN < o.ReadLSN && lane.Generation == o.Generation:
		return catalog.Errorf(catalog.Invalid, catalog.CodeGap, "read the table anew",
			"the table was read at %s after it was read at %s: the source's log went back", e.LSN, o.ReadLSN)
	case e.LSN < o.ReadLSN: // this partition is behind another
		lane.begin(max(lane.Generation, o.Generation-1))
		return nil
	}
	lane.begin(o.Generation)
	lane.Ended = e.Snapshot == InitialLast
	return nil
}

// follow brings a partition to the newest generation: every change from the log comes
// after the snapshot that it follows.
func (o *Order) follow(lane *Lane) {
	o.Generation = max(o.Generation, 1)
	lane.begin(o.Generation)
	lane.Ended = true
}

// begin starts a generation, if it is another.
func (l *Lane) begin(generation uint32) {
	if l.Generation != generation {
		*l = Lane{Generation: generation}
	}
}

// streamed returns the ordinal of a streamed change.
func (l *Lane) streamed(e *Event, partition int32) (uint64, error) {
	if err := l.anew(e); err != nil {
		return 0, err
	}
	commit := l.commit(e)
	l.Lacks = l.lacking(e)
	if l.shares(e) {
		l.Same++
	} else {
		l.Sequence, l.LSN, l.TxID, l.Run, l.Same = e.Sequence, e.LSN, e.TxID, e.Run, 1
	}
	if e.MovedFrom {
		l.Same = max(l.Same, 2) // the first half may stand in another partition
	}
	distance := int64(e.LSN-commit) + distanceOffset
	if commit == uncommitted { // no transaction has ended from which to count
		distance = int64(e.LSN % (1 << distanceBits))
	}
	switch {
	case commit == uncommitted && l.First != 0 && e.LSN>>distanceBits != l.First>>distanceBits:
		return 0, unplaceable("its lsn %s is too far from %s of the same transaction", e.LSN, l.First)
	case distance < 0 || distance >= 1<<distanceBits:
		return 0, unplaceable("its lsn %s is too far from %s, where the last transaction ended", e.LSN, e.Sequence)
	case l.Same > samePlaces:
		return 0, unplaceable("more than %d changes share the lsn %s", samePlaces, e.LSN)
	}
	l.Early.note(e, l.First)
	if commit == uncommitted {
		l.First = max(l.First, e.LSN)
	} else {
		l.Numbered = true
	}
	return streamedBit | uint64(distance)<<placeBits | uint64(l.Same-1)<<partitionBits | uint64(partition), nil
}

// shares reports whether a change has the place of the newest one, in the same run.
func (l *Lane) shares(e *Event) bool {
	return e.LSN == l.LSN && e.Sequence == l.Sequence && e.Run == l.Run && l.Same > 0
}

// incremental checks that an incremental read says where it was read.
func (l *Lane) incremental(e *Event) error {
	if !e.HasSequence {
		return unplaceable("an incremental read without source.sequence has no place among the changes")
	}
	return l.anew(e)
}

// anew refuses a change of a connector that has seen no commit, after one that had, unless
// it is sent again: somebody made the connector anew and let it read nothing, and what
// came between is missing.
func (l *Lane) anew(e *Event) error {
	if e.Sequence == 0 && l.Numbered && e.LSN > l.First {
		return catalog.Errorf(catalog.Invalid, catalog.CodeGap, "read the table anew",
			"the connector started from nothing at %s without reading the table", e.LSN)
	}
	return nil
}

func unplaceable(format string, args ...any) *catalog.Error {
	return catalog.Errorf(catalog.Invalid, catalog.CodeDecode, "read the table anew", "a change has no position: "+format, args...)
}
