package kafka

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// notification is what a connector tells of an incremental read.
type notification struct {
	ID        string `json:"id"` // of the newest signal that was taken up
	Type      string `json:"type"`
	Aggregate string `json:"aggregate_type"`
	Data      struct {
		// Of a scan that is completed: of which table, and how it ended.
		Table  string `json:"scanned_collection"`
		Status string `json:"status"`
	} `json:"additional_data"`
}

// Words of notifications.
const (
	scanAggregate = "Incremental Snapshot"
	scanStarted   = "STARTED" // no other one was under way
	scanCompleted = "TABLE_SCAN_COMPLETED"
	scanAllDone   = "COMPLETED" // nothing is left to be read
	scanAborted   = "ABORTED"
	scanSucceeded = "SUCCEEDED"
	scanEmpty     = "EMPTY"
	scanOther     = "something else" // that stands in Avro
)

// readNotification reads what is told of an incremental read, in JSON, with its schema or
// without, or in Avro; false for anything else. Avro is not read: it is asked for the bytes
// that it has for an id, which nobody else uses, and for a table. Else they are scanOther.
func readNotification(value []byte, id, table string) (notification, bool) {
	if len(value) > 0 && value[0] == 0 {
		return avroNotification(value, id, table)
	}
	var n notification
	var schemed struct {
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(value, &schemed) == nil && schemed.Payload != nil {
		value = schemed.Payload
	}
	return n, json.Unmarshal(value, &n) == nil && n.Aggregate == scanAggregate
}

func avroNotification(value []byte, id, table string) (notification, bool) {
	n := notification{ID: scanOther, Type: scanOther, Aggregate: scanAggregate}
	if !bytes.Contains(value, avroText(n.Aggregate)) {
		return n, false
	}
	if bytes.Contains(value, avroText(id)) {
		n.ID = id
	}
	for _, word := range []string{scanStarted, scanCompleted, scanAllDone, scanAborted} {
		if bytes.Contains(value, avroText(word)) {
			n.Type = word
			break
		}
	}
	n.Data.Table = avroValue(value, "scanned_collection", table)
	n.Data.Status = avroValue(value, "status", scanSucceeded, scanEmpty)
	return n, true
}

// avroValue says which of some texts a map has under a key; scanOther when it is none.
func avroValue(value []byte, key string, texts ...string) string {
	_, value, _ = bytes.Cut(value, avroText(key))
	for _, text := range texts {
		b := avroText(text)
		if bytes.HasPrefix(value, b) || len(value) > 0 && bytes.HasPrefix(value[1:], b) { // or a branch of a union
			return text
		}
	}
	return scanOther
}

// avroText is a string in Avro: its length, and itself.
func avroText(s string) []byte { return append(binary.AppendVarint(nil, int64(len(s))), s...) }
