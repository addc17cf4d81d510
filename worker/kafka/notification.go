package kafka

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// notification is what a connector tells of an incremental read, under the id of the
// signal that asked for it.
type notification struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		// Of a scan that is completed: of which table, and how it ended.
		Table  string `json:"scanned_collection"`
		Status string `json:"status"`
	} `json:"additional_data"`
}

// Words of notifications.
const (
	scanStarted   = "STARTED" // and no other one was under way
	scanCompleted = "TABLE_SCAN_COMPLETED"
	scanAborted   = "ABORTED"
	scanSucceeded = "SUCCEEDED"
	scanEmpty     = "EMPTY"
	scanOther     = "something else" // that stands in Avro
)

// readNotification reads a notification with an id: in JSON, with its schema or without,
// or in Avro. It reports false for anything else. Avro is not read: the bytes that it has
// for the id, which nobody else uses, and for the table are looked for.
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
	return n, json.Unmarshal(value, &n) == nil && n.ID == id
}

func avroNotification(value []byte, id, table string) (n notification, ok bool) {
	if !bytes.Contains(value, avroText(id)) {
		return n, false
	}
	n.ID = id
	for _, word := range []string{scanStarted, scanCompleted, scanAborted} {
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
