package console

import (
	"fmt"
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

// picture is a chart, which the template "chart" draws. About says what a person who
// cannot see it must know. High, From and To label the axes.
type picture struct {
	Width, Height         int
	About, High, From, To string
	Paths                 []string // one for each line
}

// chart is a picture of lines over a common axis.
func chart(width int, unit string, step bool, lines ...[]float64) picture {
	top := 0.0
	for _, values := range lines {
		for _, v := range values {
			top = math.Max(top, v)
		}
	}
	top = roundUp(top)
	high := grouped(strconv.FormatFloat(top, 'f', -1, 64))
	p := picture{Width: width, Height: chartHeight, High: strings.TrimSpace(high + " " + unit)}
	for _, values := range lines {
		if path := trace(values, width, top, step); path != "" {
			p.Paths = append(p.Paths, path)
		}
	}
	return p
}

// trace is the path of a line. A single value is a level line.
func trace(values []float64, width int, top float64, step bool) string {
	if len(values) == 1 {
		values = slices.Repeat(values, 2)
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
