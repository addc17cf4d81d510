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
		Status string `json:"status"` // of a scan that is completed
	} `json:"additional_data"`
}

// Words of notifications.
const (
	scanCompleted = "TABLE_SCAN_COMPLETED"
	scanAborted   = "ABORTED"
	scanSucceeded = "SUCCEEDED"
	scanEmpty     = "EMPTY"
	scanOther     = "another status" // of Avro, which is not read that far
)

// readNotification reads a notification with an id: in JSON, with its schema or without,
// or in Avro. It reports false for anything else.
func readNotification(value []byte, id string) (notification, bool) {
	var n notification
	if len(value) > 0 && value[0] == 0 {
		return avroNotification(value, id)
	}
	var schemed struct {
		Payload json.RawMessage `json:"payload"`
	}
	if json.Unmarshal(value, &schemed) == nil && schemed.Payload != nil {
		value = schemed.Payload
	}
	return n, json.Unmarshal(value, &n) == nil && n.ID == id
}

// avroNotification looks for what it wants to know by the bytes that Avro has for it: an
// id that nobody else uses needs no schema to be known again.
func avroNotification(value []byte, id string) (n notification, ok bool) {
	if !bytes.Contains(value, avroText(id)) {
		return n, false
	}
	n.ID = id
	for _, word := range []string{scanCompleted, scanAborted} {
		if bytes.Contains(value, avroText(word)) {
			n.Type = word
		}
	}
	n.Data.Status = scanOther
	_, data, _ := bytes.Cut(value, avroText("status"))
	for _, word := range []string{scanSucceeded, scanEmpty} {
		text := avroText(word)
		if bytes.HasPrefix(data, text) || len(data) > 0 && bytes.HasPrefix(data[1:], text) { // or one branch of a union
			n.Data.Status = word
		}
	}
	return n, true
}

// avroText is a string in Avro: its length, and itself.
func avroText(s string) []byte { return append(binary.AppendVarint(nil, int64(len(s))), s...) }
