package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The picture's measures, in pixels.
const (
	pictureWidth = 960
	labelWidth   = 470
	rowHeight    = 26
	topMargin    = 64
)

// writeSVG draws one bar for each comparison, as long as its ratio, with a mark
// where the goal is and a line at 1, where the other side stands.
func (r *report) writeSVG(to io.Writer) error {
	comparisons := slices.DeleteFunc(r.comparisons(), func(c comparison) bool { return c.ratio() == 0 })
	longest := 1.0
	for _, c := range comparisons {
		longest = max(longest, c.ratio(), c.goal)
	}
	scale := (pictureWidth - labelWidth - 60) / longest
	height := topMargin + rowHeight*len(comparisons) + 30

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" role="img">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(&b, `<title>Records per second against the other side</title>`+"\n")
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<text x="16" y="26" font-size="17" font-weight="bold" fill="#1a1a1a">Times as many records per second as the other side</text>`+"\n")
	fmt.Fprintf(&b, `<text x="16" y="46" fill="#666666">%s</text>`+"\n", escape(r.machineLine()))
	for i, c := range comparisons {
		y := topMargin + i*rowHeight
		color := "#2f6fab"
		if c.goal > 0 && c.ratio() < c.goal {
			color = "#b5542d"
		}
		label := fmt.Sprintf("%s, %d conn., %s / %s", c.work.name, c.connections, c.ours.side, c.theirs.side)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#1a1a1a">%s</text>`+"\n", labelWidth-10, y+17, escape(c.engine+": "+label))
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", labelWidth, y+4, c.ratio()*scale, rowHeight-8, color)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="#1a1a1a">%.2f</text>`+"\n", labelWidth+max(c.ratio(), c.goal)*scale+6, y+17, c.ratio())
		if c.goal > 0 {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="2" height="%d" fill="#1a1a1a"/>`+"\n", labelWidth+c.goal*scale-1, y+2, rowHeight-4)
		}
	}
	bottom := topMargin + rowHeight*len(comparisons)
	fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#999999" stroke-dasharray="3 3"/>`+"\n",
		labelWidth+scale, topMargin, labelWidth+scale, bottom)
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#666666">dashed: the other side; black mark: the goal</text>`+"\n", labelWidth, bottom+20)
	b.WriteString("</svg>\n")
	_, err := io.WriteString(to, b.String())
	return err
}

// machineLine is the machine in one line.
func (r *report) machineLine() string {
	var parts []string
	for _, f := range r.machine {
		switch f.name {
		case "Cores":
			parts = append(parts, f.value+" cores")
		case "CPU", "Memory", "Kernel", "Go":
			parts = append(parts, f.value)
		case "Postgres server_version":
			parts = append(parts, "Postgres "+f.value)
		case "SQLite":
			parts = append(parts, "SQLite "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

func escape(text string) string {
	var b strings.Builder
	// A strings.Builder takes everything.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}
