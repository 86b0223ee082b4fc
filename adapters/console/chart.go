package console

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// picture is a chart, which the template "chart" draws. High, From and To label the axes.
type picture struct {
	High, From, To string
	// Lines are drawn at the x values At. Width is the last x value, and Top the highest value.
	Lines      [][]float64
	At         []float64
	Width, Top float64
	Step       bool
}

// chart returns a picture of lines at the x values at, or 0, 1, 2 and so on. A single value is
// a level line.
func chart(unit string, step bool, at []float64, lines ...[]float64) picture {
	for i, values := range lines {
		if len(values) == 1 {
			lines[i] = slices.Repeat(values, 2)
		}
	}
	for len(at) < len(lines[0]) {
		at = append(at, float64(len(at)))
	}
	top := roundUp(cmp.Or(slices.Max(slices.Concat(lines...)), 1))
	high := grouped(strconv.FormatFloat(top, 'f', -1, 64)) + " " + unit
	return picture{High: strings.TrimSpace(high), Lines: lines, At: at, Width: at[len(at)-1], Top: top, Step: step}
}

// roundUp returns the next round number: 1, 2, 5, 10, 20, 50 and so on.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 5} {
		if v <= f*power*1.0001 {
			return f * power
		}
	}
	return 10 * power
}

func short(v float64) string {
	return grouped(strconv.FormatFloat(v, 'f', max(0, 2-int(math.Log10(max(1, v)))), 64))
}
