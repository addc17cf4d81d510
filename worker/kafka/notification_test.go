package kafka

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotificationsAreReadInEveryFormat(t *testing.T) {
	t.Parallel()
	const id = "lakeweir-read-1"
	plain := `{"id":"lakeweir-read-1","type":"TABLE_SCAN_COMPLETED","aggregate_type":"Incremental Snapshot","additional_data":{"scanned_collection":"app.EMPTY","status":"SUCCEEDED"},"timestamp":1}`
	avro := func(kind, aggregate, status, before string) string {
		b := []byte{0, 0, 0, 0, 9}
		for _, text := range []string{id, kind, aggregate} {
			b = append(b, avroText(text)...)
		}
		b = append(append(b, 4), avroText("scanned_collection")...)
		b = append(append(b, before...), avroText("app.EMPTY")...)
		b = append(append(append(b, avroText("status")...), before...), avroText(status)...)
		return string(append(b, 0))
	}
	for name, value := range map[string]string{
		"json": plain, "json with schema": `{"schema":{"type":"struct"},"payload":` + plain + `}`,
		"avro": avro(scanCompleted, scanAggregate, scanSucceeded, ""), "avro with optional values": avro(scanCompleted, scanAggregate, scanSucceeded, "\x02"),
	} {
		n, ok := readNotification([]byte(value), id, "app.EMPTY")
		require.True(t, ok, name)
		require.Equal(t, id, n.ID, name)
		require.Equal(t, "app.EMPTY", n.Data.Table, name)
		require.Equal(t, scanCompleted, n.Type, name)
		require.Equal(t, scanSucceeded, n.Data.Status, name)
	}
	n, ok := readNotification([]byte(avro(scanCompleted, scanAggregate, "UNKNOWN_SCHEMA", "")), "lakeweir-read-2", "app.other")
	require.True(t, ok)
	require.Equal(t, notification{ID: scanOther, Type: scanCompleted, Aggregate: scanAggregate, Data: n.Data}, n)
	require.Equal(t, scanOther, n.Data.Status)
	require.Equal(t, scanOther, n.Data.Table)
	for _, kind := range []string{scanStarted, scanAllDone, scanAborted} {
		n, _ = readNotification([]byte(avro(kind, scanAggregate, "", "")), id, "app.EMPTY")
		require.Equal(t, kind, n.Type)
	}
	for _, other := range []string{avro(scanCompleted, "Initial Snapshot", "", ""), strings.Replace(plain, "Incremental", "Initial", 1), "", "\x00", "{", "null", strings.Repeat("[", 100)} {
		_, ok := readNotification([]byte(other), id, "app.EMPTY")
		require.False(t, ok, other)
	}
}
