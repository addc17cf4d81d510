package debezium

import "github.com/lakeweir/lakeweir/catalog"

// early remembers the transaction whose changes came before the connector had seen a
// commit: the first one after the initial reads. Its changes carry no sequence. When the
// connector is restarted in its midst, those that come again, and the rest of it, carry
// one, a place within that same transaction; txId and lsn stay. All of them belong to the
// Commit that the first of them had.
//
// A connector that is killed may send the transaction again long after its end. What tells
// it from a later one whose txId is the same, after four thousand million others, is the
// sequence: every later transaction's is at or above Over.
type early struct {
	TxID uint64      `json:"txid,omitempty"` // 0: none
	Over catalog.LSN `json:"over,omitempty"` // the sequence of the first change that came after it; 0 before
}

// has reports whether a streamed change is of the transaction.
func (y early) has(txID uint64, sequence catalog.LSN) bool {
	return y.TxID != 0 && txID == y.TxID && (y.Over == 0 || sequence < y.Over)
}

// note takes a streamed change in; first is the highest LSN of those before any commit.
func (y *early) note(e *Event, first catalog.LSN) {
	switch {
	case y.has(e.TxID, e.Sequence):
	case e.Sequence == 0 && e.TxID != 0:
		*y = early{TxID: e.TxID}
	case y.TxID != 0 && y.Over == 0 && e.Sequence > first:
		y.Over = e.Sequence
	}
}
