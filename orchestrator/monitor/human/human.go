// Package human writes durations, counts, rates and sizes as a person reads them at a
// glance: "4.1 s", "31 min", "3.1 M", "10 GiB". It owns nothing else; pages and
// commands share it so that both say the same.
package human

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Span prints a duration in its largest unit: "0.4 s", "40 s", "31 min", "5 h", "3 d".
// Below ten seconds it has one decimal; a negative one is 0.
func Span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < 9950*time.Millisecond:
		return strconv.FormatFloat(math.Round(d.Seconds()*10)/10, 'f', 1, 64) + " s"
	case d < 100*time.Second:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 100*time.Minute:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + " d"
	}
}

// Ago prints how long before now t was, in whole units: "now", "4 s ago", "31 min
// ago"; "–" for the zero time.
func Ago(t, now time.Time) string {
	if t.IsZero() {
		return "–"
	}
	d := now.Sub(t)
	if d < time.Second {
		return "now"
	}
	return strings.Replace(Span(d.Truncate(time.Second)), ".0 ", " ", 1) + " ago"
}

// Count prints a number with at most four digits: "0", "9,999", "12.9 k", "3.1 M".
func Count(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	switch f := float64(n); {
	case n < 10_000:
		return sign + Exact(n)
	case f < 999_950:
		return sign + decimals(f/1e3) + " k"
	case f < 999_950_000:
		return sign + decimals(f/1e6) + " M"
	default:
		return sign + decimals(f/1e9) + " G"
	}
}

// Exact prints every digit, in groups: "2,546,557".
func Exact(n int64) string {
	s := strconv.FormatInt(n, 10)
	digits := strings.TrimPrefix(s, "-")
	var b strings.Builder
	b.WriteString(s[:len(s)-len(digits)])
	for i, r := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Rate prints changes a second: "0", "0.3/s", "612/s", "12.9 k/s".
func Rate(perSecond float64) string {
	switch {
	case perSecond <= 0 || math.IsNaN(perSecond):
		return "0"
	case perSecond < 0.05:
		return "<0.1/s"
	case perSecond < 9.95:
		return decimals(perSecond) + "/s"
	default:
		return Count(int64(math.Round(perSecond))) + "/s"
	}
}

// Bytes prints a size in binary units: "0 B", "512 KiB", "10 GiB".
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, i := float64(max(0, n)), 0
	for f >= 1023.95 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return strconv.FormatInt(max(0, n), 10) + " B"
	}
	return decimals(f) + " " + units[i]
}

// Clock prints a time as the page shows it: "14:02:10" on now's day, else "28 Nov
// 14:02", and the date alone in another year; "–" for the zero time. It is in UTC, as everything in the registry.
func Clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case t.IsZero():
		return "–"
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	default:
		return t.Format("2006-01-02")
	}
}

// decimals prints one decimal below a hundred, where it is not 0, and none above.
func decimals(f float64) string {
	if f >= 99.95 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0")
}
