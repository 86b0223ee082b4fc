package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
)

// refusedShares are the shares of refused sales, in percent, whose rates are compared
// with that of sales that all complete.
var refusedShares = []int{1, 5, 20, 50, 95}

// refusalConnections is the number of connections, at which a batch has some tens of sales.
const refusalConnections = 64

var refusalColumns = []string{"engine", "side", "refused", "decided a second", "to none refused"}

// measureRefusals measures what refused sales cost the others in their batches. A
// sale is refused because the customer does not have the fund.
func (b *bank) measureRefusals(ctx context.Context, s settings, r *report, progress io.Writer) error {
	works := []work{plainSale}
	for _, share := range refusedShares {
		works = append(works, work{name: "refused", title: fmt.Sprintf("sale, %d %% refused", share), records: 1, pick: pickAny, refused: share})
	}
	for _, o := range b.stores {
		if err := warmUp(ctx, s.length(), works, o.served); err != nil {
			return err
		}
		measures := make([][]measure, len(works))
		for round := range s.rounds {
			for i := range works {
				if round%2 == 1 { // the first one may have a quieter machine
					i = len(works) - 1 - i
				}
				m, err := b.measure(ctx, o.served, works[i], refusalConnections, s.length())
				if err != nil {
					return fmt.Errorf("%s: %w", works[i].title, err)
				}
				fmt.Fprintf(progress, "%s: %s\n", works[i].title, m)
				measures[i] = append(measures[i], m)
			}
		}
		clean := medians(measures[0]).records
		for i, w := range works {
			rate := medians(measures[i]).records
			r.add(fmt.Sprintf("Sales of which some are refused, with %d connections: operations decided.", refusalConnections), refusalColumns,
				b.engine.name(), o.served.name(), strconv.Itoa(w.refused)+" %", fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.2f", rate/clean))
		}
	}
	return nil
}
