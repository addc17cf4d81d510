package debezium

import "strconv"

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
