// Package chart draws small SVG charts as text: numbers in, markup out.
//
// It is pure and knows nothing of tables or pages. Colours are the stylesheet's, by
// class; a chart has a label that says in words what it shows. Markup never contains
// anything of the caller but the label, escaped.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Sparkline draws the points from left to right over the whole width, NaN as a gap, and
// a dashed line at limit. The vertical scale starts at 0 and holds both; what is above
// the limit is drawn in class "over". With no point it draws the limit alone.
func Sparkline(points []float64, limit float64, width, height int, label string) string {
	top := limit * 1.25
	for _, p := range points {
		if !math.IsNaN(p) && !math.IsInf(p, 0) {
			top = max(top, p)
		}
	}
	if top <= 0 {
		top = 1
	}
	const margin = 2.0
	y := func(v float64) float64 {
		return float64(height) - margin - min(max(v/top, 0), 1)*(float64(height)-2*margin)
	}
	x := func(i int) float64 {
		if len(points) < 2 {
			return float64(width) - margin
		}
		return margin + float64(i)/float64(len(points)-1)*(float64(width)-2*margin)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark" viewBox="0 0 %d %d" width="%d" height="%d" preserveAspectRatio="none" role="img" aria-label="%s">`, width, height, width, height, html.EscapeString(label))
	if limit > 0 {
		fmt.Fprintf(&b, `<line class="limit" x1="0" x2="%d" y1="%s" y2="%s"/>`, width, num(y(limit)), num(y(limit)))
	}
	for from := 0; from < len(points); {
		to := from
		for to < len(points) && !math.IsNaN(points[to]) {
			to++
		}
		if to > from {
			drawRun(&b, points[from:to], from, limit, x, y)
		}
		from = to + 1
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// drawRun draws points that follow each other without a gap; the first is at index from.
func drawRun(b *strings.Builder, run []float64, from int, limit float64, x func(int) float64, y func(float64) float64) {
	class := "line"
	for _, p := range run {
		if limit > 0 && p > limit {
			class = "line over"
		}
	}
	if len(run) == 1 { // a line of one point has no length
		fmt.Fprintf(b, `<circle class="%s" cx="%s" cy="%s" r="1.2"/>`, class, num(x(from)), num(y(run[0])))
		return
	}
	fmt.Fprintf(b, `<polyline class="%s" points="`, class)
	for i, p := range run {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(num(x(from+i)) + "," + num(y(p)))
	}
	b.WriteString(`"/>`)
}

// Bar draws how much of a whole is used: share 0 to 1, more is a full bar. The class is
// the stylesheet's: "ok", "near", "over" or "idle".
func Bar(share float64, class string, width, height int) string {
	if math.IsNaN(share) {
		share = 0
	}
	used := min(max(share, 0), 1) * float64(width)
	if share > 0 {
		used = max(used, 1) // a little is not nothing
	}
	return fmt.Sprintf(`<svg class="bar" viewBox="0 0 %d %d" width="%d" height="%d" aria-hidden="true"><rect class="track" width="%d" height="%d" rx="%s"/><rect class="%s" width="%s" height="%d" rx="%s"/></svg>`,
		width, height, width, height, width, height, num(float64(height)/2), html.EscapeString(class), num(used), height, num(float64(height)/2))
}

func num(f float64) string {
	s := strconv.FormatFloat(f, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0")
}
