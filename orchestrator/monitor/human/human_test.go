package human_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lakeweir/lakeweir/orchestrator/monitor/human"
)

func TestSpansAreShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0.0 s", 0: "0.0 s", 449 * time.Millisecond: "0.4 s", 4100 * time.Millisecond: "4.1 s", 9949 * time.Millisecond: "9.9 s",
		9951 * time.Millisecond: "9 s", 40*time.Second + 900*time.Millisecond: "40 s", 99 * time.Second: "99 s", 100 * time.Second: "1 min",
		31 * time.Minute: "31 min", 99 * time.Minute: "99 min", 5 * time.Hour: "5 h", 47 * time.Hour: "47 h", 72 * time.Hour: "3 d",
	} {
		require.Equal(t, want, human.Span(d), d.String())
	}
}

func TestCountsKeepTheirSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 7: "7", 9999: "9,999", 10_000: "10 k", 12_940: "12.9 k", 999_949: "1000 k", 999_950: "1 M", 3_141_592: "3.1 M", 2_000_000_000: "2 G", -12_940: "-12.9 k",
		math.MaxInt64: "9223372037 G",
	} {
		require.Equal(t, want, human.Count(n), n)
	}
	require.Equal(t, "2,546,557", human.Exact(2_546_557))
	require.Equal(t, "-1,000", human.Exact(-1000))
	for r, want := range map[float64]string{0: "0", 0.01: "<0.1/s", 0.3: "0.3/s", 9.9: "9.9/s", 612.4: "612/s", 12_940: "12.9 k/s", -1: "0"} {
		require.Equal(t, want, human.Rate(r), r)
	}
	for n, want := range map[int64]string{-5: "0 B", 0: "0 B", 1023: "1023 B", 1024: "1 KiB", 10 << 30: "10 GiB", 1536: "1.5 KiB", math.MaxInt64: "8192 PiB"} {
		require.Equal(t, want, human.Bytes(n), n)
	}
}

func TestTimesAreRelativeToNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 14, 2, 10, 500_000_000, time.UTC)
	for _, c := range []struct {
		t          time.Time
		ago, clock string
	}{
		{time.Time{}, "–", "–"},
		{now, "now", "14:02:10"},
		{now.Add(time.Minute), "now", "14:03:10"},
		{now.Add(-4 * time.Second), "4 s ago", "14:02:06"},
		{now.Add(-4900 * time.Millisecond), "4 s ago", "14:02:05"},
		{now.Add(-31 * time.Minute), "31 min ago", "13:31:10"},
		{now.Add(-24 * time.Hour), "24 h ago", "28 Nov 14:02"},
		{now.AddDate(-1, 0, 0), "365 d ago", "2025-11-29"},
	} {
		require.Equal(t, c.ago, human.Ago(c.t, now))
		require.Equal(t, c.clock, human.Clock(c.t, now))
	}
}
