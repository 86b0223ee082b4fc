package backoffice

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"bankingapi/domain/audit"
)

// Proof is the result of Verify, with the number of rows that it checked.
type Proof struct {
	Holdings, Accounts, Sales, Postings int64
	// Findings is the number of rows that break a rule. A row counts once for each rule that it
	// breaks. If Findings is 0, the book holds.
	Findings int64
	// Units are the totals of each fund. Money are the totals of each currency.
	Units, Money []Total
	// Batches is the number of batches in the log of the trail. Unsealed is the number of
	// batches that are not in the log yet. Both are 0 if the trail was not checked.
	Batches, Unsealed int64
	Trail             TrailProof
}

// bookHolds begins the text of a proof without findings.
const bookHolds = "the book holds"

// String returns the result in a sentence.
func (p Proof) String() string {
	result := bookHolds
	if p.Findings > 0 {
		result = Plural(p.Findings, "finding")
	}
	return result + ": " + p.CheckedRows() + " checked"
}

// CheckedRows returns the numbers of rows as a text for people.
func (p Proof) CheckedRows() string {
	return fmt.Sprintf("%s, %s, %s and %s", Plural(p.Holdings, "holding"), Plural(p.Accounts, "account"),
		Plural(p.Sales, "sale"), Plural(p.Postings, "posting"))
}

// BookHolds reports whether the details of an act of audit.Verify say that the book holds.
func BookHolds(details string) bool { return strings.HasPrefix(details, bookHolds) }

// Total is the sum of a fund or a currency.
type Total struct {
	// Of is the fund's code and holder, or the currency's code.
	Of string
	// Customers is the sum of all holdings or accounts. Bank is what the postings left with the
	// bank. Together they are 0.
	Customers, Bank string
}

// Finding is a row that breaks a rule.
type Finding struct {
	// Rule is the name of the rule.
	Rule string
	// Text names the row and says how it breaks the rule, in one line. It names
	// customers and accounts: show it to the operator only.
	Text string
}

// Watch reports the progress of Verify. Each function may be nil. Verify calls them one at a
// time, until it returns.
type Watch struct {
	Found func(Finding)
	// Progress receives the number of rows that were checked so far.
	Progress func(rows int64)
	// Report receives the findings. Office.Verify also adds who ran it, when, and the Proof. It
	// may be nil.
	Report *Report
}

// Verify checks the book and its trail, which must extend the checkpoints in against. It keeps
// the act of the person in ctx, if ctx names a person. The check is valid even if the act
// cannot be kept, as on a read-only server.
func (o *Office) Verify(ctx context.Context, against []string, w Watch) (proof Proof, err error) {
	act := o.Acts.New(ctx, audit.Verify, "", "") // its details are Proof.String
	if w.Report == nil {
		w.Report = new(Report)
	} else if o.About != nil {
		if *w.Report, err = o.About(ctx); err != nil {
			return proof, err
		}
	}
	w.Report.By = strings.Trim(act.Actor+" at "+act.Origin, " ")
	w.Report.Started = act.At
	check := TrailCheck{TrailProof: TrailProof{Reason: "This storage keeps no trail."}}
	if o.CheckTrail != nil {
		if check, err = o.CheckTrail(ctx, against); err != nil {
			return proof, err
		}
	}
	proof, err = Verify(ctx, o.Evidence, &check, w)
	w.Report.Proof = proof
	if err != nil {
		return proof, err
	}
	if act.Who != (audit.Who{}) && !check.IsClosed {
		act.Details = proof.String()
		if err := o.Audit.Keep(ctx, act); err != nil && o.Unkept != nil {
			o.Unkept(err)
		}
	}
	w.Report.Ended = o.Acts.Now()
	return proof, nil
}

// Verify checks all Rules on one snapshot, so that sales may continue. A row that breaks a rule
// is a finding, not an error. Memory does not grow with the book: Verify keeps only one total for
// each fund and currency, and a limited number of roots of the trail. The error has a kind of
// package fault. If check is nil, Verify does not check the trail.
func Verify(ctx context.Context, evidence Evidence, check *TrailCheck, w Watch) (Proof, error) {
	w.Progress = orQuiet(w.Progress)
	run := verification{watch: w, units: make(map[string]*total), money: make(map[string]*total)}
	run.broken = func(text string) { run.found(*run.rule, text) }
	witness := Witness{
		Position: run.position, Operation: run.operation,
		Found: func(f Finding) error {
			run.found(Rule{Name: f.Rule}, f.Text)
			return nil
		},
	}
	check.witness(&run, &witness)
	if err := evidence.Read(ctx, witness); err != nil {
		return run.proof, err
	}
	run.proof.Units, run.proof.Money = run.totals(run.units), run.totals(run.money)
	w.Progress(run.rows)
	return run.proof, nil
}

// verification is one run of Verify.
type verification struct {
	watch Watch
	// broken adds a finding of the current rule. All operations use one closure.
	broken       func(text string)
	rule         *Rule
	rows, told   int64 // told is the number that Progress received last
	proof        Proof
	units, money map[string]*total
}

// total is a sum of any size.
type total struct {
	customers, postings big.Int
	decimals            int
}

// count counts rows that are checked.
func (v *verification) count(rows int64) {
	v.rows += rows
	if v.rows-v.told >= 1000 {
		v.told = v.rows
		v.watch.Progress(v.rows)
	}
}

func (v *verification) found(r Rule, text string) {
	v.proof.Findings++
	finding := Finding{r.Name, text}
	report := v.watch.Report
	if report != nil && len(report.Findings) < MaxFindings {
		report.Findings = append(report.Findings, finding)
	}
	if v.watch.Found != nil {
		v.watch.Found(finding)
	}
}

// position counts a position, adds it and its postings to the total of its fund or currency,
// and checks it.
func (v *verification) position(p *Position) error {
	rules := holdingRules
	exist := &v.proof.Holdings
	totals := v.units
	of := p.Holding.IMKBCode + " " + p.Holding.HolderCorporationName
	if p.IsMoney {
		rules = accountRules
		exist = &v.proof.Accounts
		totals = v.money
		of = p.Account.CurrencyCode
	}
	t := totals[of]
	if t == nil {
		t = &total{decimals: p.decimals()}
		totals[of] = t
	}
	held := big.NewInt(p.Quantity)
	posted := p.Posted.Value()
	t.customers.Add(&t.customers, held)
	t.postings.Add(&t.postings, posted)
	v.proof.Postings += p.Postings
	if p.Exists {
		*exist++
	}
	switch {
	case !p.Exists:
		v.found(rules[0], fmt.Sprintf("%s: does not exist but has %d postings", p, p.Postings))
	case p.Quantity < 0:
		v.found(rules[1], fmt.Sprintf("%s: is below zero: %s", p, exact(held, t.decimals)))
	case held.Cmp(posted) != 0:
		v.found(rules[2], fmt.Sprintf("%s: is %s, but its postings sum to %s", p, exact(held, t.decimals), exact(posted, t.decimals)))
	case p.Postings == 0:
		v.found(rules[3], fmt.Sprintf("%s: exists, but no import has written it", p))
	}
	v.count(1 + p.Postings)
	return nil
}

func (v *verification) operation(o *Operation) error {
	for i := range operationRules {
		v.rule = &operationRules[i].Rule
		operationRules[i].check(o, v.broken)
	}
	v.proof.Sales += int64(len(o.Sales))
	v.count(1)
	return nil
}

// totals returns the totals, and checks that customers and bank together are zero in each.
func (v *verification) totals(of map[string]*total) []Total {
	var all []Total
	for _, name := range slices.Sorted(maps.Keys(of)) {
		t := of[name]
		bank := new(big.Int).Neg(&t.postings)
		closed := Total{name, exact(&t.customers, t.decimals), exact(bank, t.decimals)}
		all = append(all, closed)
		if t.customers.Cmp(&t.postings) != 0 {
			v.found(zeroSum, fmt.Sprintf("%s: customers have %s and the bank %s, which is not zero together",
				name, closed.Customers, closed.Bank))
		}
	}
	return all
}
