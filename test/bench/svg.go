package main

import (
	"fmt"
	"io"
	"strings"
)

// The measures of the picture, in pixels.
const (
	svgWidth   = 880
	svgHeight  = 330
	panelWidth = 400
	barWidth   = 24
	groupWidth = 94
	barsTop    = 84
	barsBottom = 280
)

// svgStyle gives the picture a ground of its own, so that it is readable on
// every page, and follows the reader's choice of light or dark.
const svgStyle = `<style>
text { font: 13px sans-serif; fill: #24292f }
.ground { fill: #ffffff }
.title { font-size: 16px; font-weight: bold }
.number { font-size: 11px }
.bar0 { fill: #1f6feb }
.bar1 { fill: #8c959f }
.bar2 { fill: #c4862b }
.axis { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.ground { fill: #0d1117 }
.bar0 { fill: #58a6ff }
.bar1 { fill: #6e7681 }
}
</style>
`

// svgSides are the bars of a group, in this order.
var svgSides = []string{plainName, "pgbench", peerName}

// writeSVG draws the rates of sales and pushes on Postgres: a group of bars for
// each number of connections, a bar for each side.
func (r *report) writeSVG(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", svgWidth, svgHeight, svgWidth, svgHeight)
	b.WriteString("<title>Sales and pushes per second on Postgres</title>\n" + svgStyle)
	fmt.Fprintf(&b, `<rect class="ground" width="%d" height="%d" rx="8"/>`+"\n", svgWidth, svgHeight)
	b.WriteString(`<text class="title" x="24" y="30">Operations per second on Postgres, by number of connections</text>` + "\n")
	for i, side := range svgSides {
		x := 24 + 130*i
		fmt.Fprintf(&b, `<rect class="bar%d" x="%d" y="44" width="12" height="12"/><text x="%d" y="55">%s</text>`+"\n", i, x, x+18, side)
	}
	r.writePanel(&b, "sale", 24)
	r.writePanel(&b, "push", 24+panelWidth+32)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(to, b.String())
	return err
}

// writePanel draws the bars of one work. The highest bar fills the panel.
func (r *report) writePanel(b *strings.Builder, work string, left int) {
	rates := map[int]map[string]float64{}
	var connections []int // in the order in which they were measured
	highest := 1.0
	for _, c := range r.comparisons() {
		if c.engine != "postgres" || c.work.name != work {
			continue
		}
		if rates[c.connections] == nil {
			rates[c.connections] = map[string]float64{}
			connections = append(connections, c.connections)
		}
		for _, m := range []measure{c.ours, c.theirs} {
			rates[c.connections][m.side] = m.records
		}
	}
	connections = connections[:min(len(connections), panelWidth/groupWidth)]
	for _, n := range connections {
		for _, side := range svgSides {
			highest = max(highest, rates[n][side])
		}
	}
	fmt.Fprintf(b, `<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", left, barsBottom, left+panelWidth, barsBottom)
	for i, n := range connections {
		x := left + 8 + i*groupWidth
		for j, side := range svgSides {
			rate := rates[n][side]
			if rate == 0 {
				continue
			}
			height := int(rate / highest * (barsBottom - barsTop))
			fmt.Fprintf(b, `<rect class="bar%d" x="%d" y="%d" width="%d" height="%d"/>`, j, x+j*(barWidth+2), barsBottom-height, barWidth, height)
			fmt.Fprintf(b, `<text class="number" x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", x+j*(barWidth+2)+barWidth/2, barsBottom-height-4, thousands(rate))
		}
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%d</text>`+"\n", x+(3*barWidth+4)/2, barsBottom+18, n)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+panelWidth/2, barsBottom+38, work)
}

// thousands writes a rate in few characters: 630, 5.6k, 12k.
func thousands(rate float64) string {
	switch {
	case rate < 1000:
		return fmt.Sprintf("%.0f", rate)
	case rate < 9950:
		return fmt.Sprintf("%.1fk", rate/1000)
	default:
		return fmt.Sprintf("%.0fk", rate/1000)
	}
}
