package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"bankingapi/application/backoffice"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// manyPage cancels or reverses the operations that a list of sales shows.
type manyPage struct {
	Action  string // one of manyActions
	Path    string // of this page, with the filter
	List    string // the list with the same filter
	IDs     []operation.ID
	Sales   int64
	Sums    backoffice.FundSums
	Shown   string // identifies IDs: a form acts only on what its page counted
	More    bool   // more operations fit than one form corrects
	Report  *backoffice.Corrected
	Reasons map[string][]operation.ID // why operations of Report were refused
}

const (
	// maxMany is how many operations one form corrects, in at most manyTime.
	maxMany  = 500
	manyTime = 20 * time.Second
)

// manyActions are what a form does with all operations of a list, by the state of their sales.
var manyActions = map[operation.State]string{operation.Recorded: "cancel", operation.Completed: "reverse"}

var errMany = &problem{http.StatusBadRequest, "Filter the list by state 1 Recorded to cancel, or 2 Completed to reverse what it shows."}

func showMany(q *request) (any, error) { return countMany(q) }

// countMany finds what the filter in the URL shows, and counts it.
func countMany(q *request) (*manyPage, error) {
	values, f, err := sales.filter(q)
	if err != nil {
		return nil, err
	}
	p := &manyPage{Action: manyActions[f.State], Path: sales.address(q, "/many", values), List: sales.address(q, "", values)}
	if p.Action == "" {
		return nil, errMany
	}
	f.After = backoffice.Cursor{}
	f.ScanLimit = 0
	hash := sha256.New()
	for s, err := range q.Options.Corrector.Reader.Sales(q.ctx, f) {
		if err != nil {
			return nil, err
		}
		if !s.ReversedAt.IsZero() {
			continue
		}
		isNew := len(p.IDs) == 0 || p.IDs[len(p.IDs)-1] != s.ID
		if isNew && len(p.IDs) == maxMany {
			p.More = true
			break
		}
		if isNew {
			p.IDs = append(p.IDs, s.ID)
			hash.Write(s.ID[:])
		}
		p.add(&s)
	}
	p.Shown = p.Action + hex.EncodeToString(hash.Sum(nil))
	return p, nil
}

func (p *manyPage) add(s *fund.SaleEntry) {
	p.Sales++
	sum := p.Sums.Of(s.Terms.Holding.IMKBCode, s.Terms.Account.Currency)
	sum.Sales++
	sum.Units = sum.Units.Plus(backoffice.SumOf(int64(s.Terms.Units)))
	sum.Proceeds = sum.Proceeds.Plus(backoffice.SumOf(s.Proceeds.Minor()))
}

// correctMany corrects each operation that the page counted. Each is one act.
func correctMany(q *request) (any, error) {
	reason := strings.TrimSpace(q.field("reason"))
	if reason == "" || q.field("confirm") != "yes" {
		return nil, errReason
	}
	p, err := countMany(q)
	if err != nil {
		return nil, err
	}
	if q.field("shown") != p.Shown {
		return nil, &problem{http.StatusBadRequest, "Nothing was changed: the list has other sales now. Look at the count again."}
	}
	if !q.console.long.TryLock() {
		return nil, errLong
	}
	defer q.console.long.Unlock()
	ctx, cancel := context.WithTimeout(q.by(q.r.Context(), reason), manyTime)
	defer cancel()
	var report backoffice.Corrected
	if p.Action == "cancel" {
		report = q.Options.Corrector.CancelEach(ctx, p.IDs)
	} else {
		report = q.Options.Corrector.ReverseEach(ctx, p.IDs)
	}
	if report.Err != nil {
		q.Options.Failed(q.Page.Title, report.Err)
	}
	p.Report = &report
	p.Reasons = make(map[string][]operation.ID)
	for _, refused := range report.Refused {
		text := strings.TrimPrefix(q.explain(refused.Err).Text, nothingText)
		p.Reasons[text] = append(p.Reasons[text], refused.ID)
	}
	return p, nil
}
