package debezium

import (
	"encoding/hex"
	"fmt"
	"strconv"
)

// String returns the kind's word in logs.
func (k Kind) String() string {
	switch k {
	case Row:
		return "row"
	case Truncate:
		return "truncate"
	case Tombstone:
		return "tombstone"
	case Heartbeat:
		return "heartbeat"
	case Transaction:
		return "transaction"
	case Signal:
		return "signal"
	case SchemaChange:
		return "schema-change"
	case Notification:
		return "notification"
	case Message:
		return "message"
	}
	return "kind " + strconv.Itoa(int(k))
}

// String returns the word in logs.
func (s Snapshot) String() string {
	switch s {
	case Streamed:
		return "streamed"
	case Initial:
		return "initial"
	case InitialLast:
		return "initial-last"
	case Incremental:
		return "incremental"
	}
	return "snapshot " + strconv.Itoa(int(s))
}

// String prints the digits of the run's UUID.
func (r RunID) String() string { return hex.EncodeToString(r[:]) }

// MarshalText is String, for states that are kept as JSON.
func (r RunID) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, r[:]), nil }

// UnmarshalText reads what MarshalText writes.
func (r *RunID) UnmarshalText(text []byte) error {
	if len(text) != 2*len(r) {
		return fmt.Errorf("a run's id has %d digits, not %d", 2*len(r), len(text))
	}
	_, err := hex.Decode(r[:], text)
	return err
}
