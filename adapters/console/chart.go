package console

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The size of a chart's drawing area. The picture stretches with the page.
const (
	halfWidth   = 560
	fullWidth   = 1160
	chartHeight = 130
)

// line is one series of a chart.
type line struct {
	class  string // of the stylesheet
	values []float64
}

// chart draws lines over a common axis as SVG. about says what a person who
// cannot see it must know; from and to label the ends of the axis.
func chart(width int, about, unit, from, to string, step bool, lines ...line) template.HTML {
	top := 0.0
	for _, l := range lines {
		for _, v := range l.values {
			top = math.Max(top, v)
		}
	}
	top = roundUp(top)
	escape := template.HTMLEscapeString
	var b strings.Builder
	fmt.Fprintf(&b, `<div class="chart" role="img" aria-label="%s"><svg viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, escape(about), width, chartHeight)
	for k := range 3 {
		y := chartHeight * k / 2
		fmt.Fprintf(&b, `<line class="rule" x1="0" x2="%d" y1="%d" y2="%d"/>`, width, y, y)
	}
	for i, l := range lines {
		path := trace(l.values, width, top, step)
		if path == "" {
			continue
		}
		if i == 0 {
			fmt.Fprintf(&b, `<path class="area" d="%s L%d %d L0 %d Z"/>`, path, width, chartHeight, chartHeight)
		}
		fmt.Fprintf(&b, `<path class="%s" d="%s"/>`, l.class, path)
	}
	// The picture stretches with the page. Labels are texts beside it, so that
	// they keep their size.
	fmt.Fprintf(&b, `</svg><span class="high">%s</span><span class="from">%s</span><span class="to">%s</span></div>`,
		escape(axis(top, unit)), escape(from), escape(to))
	return template.HTML(b.String()) //nolint:gosec // numbers, and texts that are escaped
}

// trace is the path of a line. A single value is a level line.
func trace(values []float64, width int, top float64, step bool) string {
	if len(values) == 1 {
		values = slices.Repeat(values, 2)
	}
	if len(values) == 0 || top <= 0 {
		return ""
	}
	var b strings.Builder
	for i, v := range values {
		x := float64(i) * float64(width) / float64(len(values)-1)
		y := chartHeight * (1 - math.Max(v, 0)/top)
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case step:
			fmt.Fprintf(&b, " H%.1f V%.1f", x, y)
		default:
			fmt.Fprintf(&b, " L%.1f %.1f", x, y)
		}
	}
	return b.String()
}

// roundUp returns the next round number: 1, 2, 5, 10, 20, 50 and so on.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5, 10} {
		if v <= f*power*1.0001 {
			return f * power
		}
	}
	return v
}

// axis is a label of an axis.
func axis(v float64, unit string) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if v >= 1000 {
		text = grouped(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strings.TrimSpace(text + " " + unit)
}

// short is a number with three digits or so.
func short(v float64) string {
	switch {
	case v >= 100:
		return grouped(strconv.FormatFloat(v, 'f', 0, 64))
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
