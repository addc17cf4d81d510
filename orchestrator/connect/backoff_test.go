package connect

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRestartsBecomeRarerUntilItIsWellForLong(t *testing.T) {
	t.Parallel()
	b := backoff{first: 10 * time.Second, longest: time.Minute, settled: 5 * time.Minute}
	now := time.Unix(0, 0)
	require.True(t, b.due(now), "the first at once")
	var waits []time.Duration
	for range 5 {
		b.tried(now)
		require.False(t, b.due(now.Add(b.wait-1)))
		require.True(t, b.due(now.Add(b.wait)))
		waits = append(waits, b.wait)
		now = now.Add(b.wait)
	}
	require.Equal(t, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}, waits)
	b.isWell(now)
	b.isWell(now.Add(4 * time.Minute))
	b.tried(now.Add(4 * time.Minute))
	require.Equal(t, time.Minute, b.wait, "well for too short a time")
	b.isWell(now.Add(5 * time.Minute))
	b.isWell(now.Add(10 * time.Minute))
	require.True(t, b.due(now.Add(10*time.Minute)))
	b.tried(now.Add(11 * time.Minute))
	require.Equal(t, 10*time.Second, b.wait)
}

func TestTracesShowNoValuesOfRows(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ERROR: duplicate key\n  Detail: Key (email, name)=(ann@x, Ann (Lee)) exists":                                      "ERROR: duplicate key\n  Detail: Key (email, name)=(***) exists",
		"Detail: Failing row contains (1, ann@x).":                                                                         "Detail: Failing row contains ***",
		"DataException: Invalid value: null used for required field":                                                       "DataException: Invalid value: ***",
		`ERROR: invalid input syntax for type integer: "ann@x"`:                                                            `ERROR: invalid input syntax for type integer: "***`,
		"starting at PostgresOffsetContext [sourceInfo=source_info[lsn=LSN{0/1}], x=[y]], but this is no longer available": "starting at PostgresOffsetContext, but this is no longer available",
		"Conversion failed at Struct{id=1,email=ann@x}":                                                                    "Conversion failed at Struct{***",
		"FATAL: password authentication failed for user \"cdc\"":                                                           "FATAL: password authentication failed for user \"cdc\"",
		"\tat java.lang.Integer.parseInt(Integer.java:1)":                                                                  "\tat java.lang.Integer.parseInt(Integer.java:1)",
	} {
		require.Equal(t, want, withoutValues(in))
	}
	require.Len(t, withoutValues(string(make([]byte, 1<<20))), maxTrace)
}
