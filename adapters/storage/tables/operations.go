package tables

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/day"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
)

// OperationRow is a row of the table operations: an operation that was answered.
type OperationRow struct {
	OperationID batch.UUID `gorm:"primaryKey"`
	Identity    batch.UUID `gorm:"not null"` // of its CallerId, or OperationID without one
	Operation   int64      `gorm:"not null"`
	OfOperation `gorm:"embedded"`
	State       int64         `gorm:"not null"`
	Faults      string        `gorm:"not null;default:''"`
	Fingerprint []byte        `gorm:"not null;default:''"` // empty without a CallerId
	DueOn       batch.Day     // the day for which it was recorded
	EndedAt     batch.Instant // when its sales were carried out, or failed on their day
	ReversalID  batch.UUID
	ReversedAt  batch.Instant
	SessionHash []byte `gorm:"not null;default:''"` // replaces an erased ChannelSessionId (proof.SessionHash)
}

func openOperations(d *Database) {
	t := &d.Operations
	open(d, t, Relied{Rights: addAndChange, Unique: "identity", Where: "caller_id <> ''"})
	t.Add = t.Insert().Racing()
	t.Find = t.Table.Find(batch.SkipLocked, "t."+IsRecorded, "state")
	t.Put = t.Update("state", "faults", "ended_at")
	d.LockOperation = t.Table.Find(batch.ForUpdate, "", "state", "reversal_id")
	d.ReverseOperation = t.Update("reversal_id", "reversed_at")
	d.EraseSession = t.Update("channel_session_id", "session_hash")
	caller := newTable[CallerRow](d)
	caller.Name = t.Name
	d.FindCaller = caller.Find(batch.NoLock, "t.caller_id <> ''", "caller_id", "operation_id", "fingerprint", "state", "faults")
}

// CallerRow is the key of an operation with a CallerId, and what a repeat needs of it.
type CallerRow struct {
	Identity    batch.UUID `gorm:"primaryKey"`
	CallerID    string     `gorm:"not null"`
	OperationID batch.UUID `gorm:"not null"`
	Fingerprint []byte     `gorm:"not null"`
	State       int64      `gorm:"not null"`
	Faults      string     `gorm:"not null"`
}

// CallerKey returns a row with this key and without the other columns.
func CallerKey(k idempotency.Key) CallerRow { return CallerRow{Identity: k.Identity()} }

// Record converts the row. key is the key of the row.
func (r *CallerRow) Record(key idempotency.Key) (idempotency.Record, error) {
	fingerprint, err := idempotency.ParseFingerprint(r.Fingerprint)
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("operation %s: %w", r.OperationID, err)
	}
	if r.CallerID != key.CallerID {
		return idempotency.Record{}, fmt.Errorf("operation %s: it has the identity of another CallerId", r.OperationID)
	}
	return idempotency.Record{
		Key:         key,
		Fingerprint: fingerprint,
		Outcome: operation.Outcome{
			ID: operation.ID(r.OperationID), State: operation.State(r.State), Faults: ParseFaults(r.Faults), //nolint:gosec // written by us
		},
	}, nil
}

// FindRecords looks up the records of the keys and adds them to the register.
func FindRecords(d *Database, keys []idempotency.Key, register *idempotency.Register) batch.Request {
	request := d.FindCaller.Request(Convert(keys, CallerKey), func(i int, row *CallerRow) error {
		record, err := row.Record(keys[i])
		if err != nil {
			return err
		}
		register.Load(record)
		return nil
	})
	request.Decides = true
	return request
}

// newOperationRow returns the row of an operation that was just decided.
func newOperationRow(name operation.Name, of *operation.Envelope, state operation.State) OperationRow {
	row := OperationRow{
		OperationID: batch.UUID(of.ID), Identity: batch.UUID(of.ID), Operation: int64(name),
		OfOperation: OfOperation{of.Subscription, headerColumns(of.Header), of.Header.RequestID, batch.Instant{Time: of.ReceivedAt}},
		State:       int64(state),
	}
	if key, ok := idempotency.KeyOf(name, of); ok {
		row.Identity = key.Identity()
	}
	return row
}

// BookOperationRows returns the rows of the operations that a settled book decided at once or
// recorded.
func BookOperationRows(c *fund.Changes, register *idempotency.Register) []OperationRow {
	rows := make([]OperationRow, 0, len(c.Sales)+len(c.Refusals))
	for i := range c.Sales {
		s := &c.Sales[i]
		if s.Index > 0 {
			continue
		}
		row := newOperationRow(operation.BuyFundFromCustomer, &s.Envelope, s.State)
		row.EndedAt = batch.Instant{Time: s.SettledAt}
		if s.State == operation.Recorded {
			row.DueOn = batch.Day(s.Terms.SelectedDay.String())
		}
		row.setFingerprint(register.FingerprintOf(operation.BuyFundFromCustomer, &s.Envelope))
		rows = append(rows, row)
	}
	for i := range c.Refusals {
		r := &c.Refusals[i]
		row := newOperationRow(r.Operation, &r.Envelope, r.State)
		row.Faults = formatFaults(r.Faults)
		row.setFingerprint(register.FingerprintOf(r.Operation, &r.Envelope))
		rows = append(rows, row)
	}
	return inOrder(rows)
}

// setFingerprint sets the fingerprint, which may be nil.
func (r *OperationRow) setFingerprint(f *idempotency.Fingerprint) {
	if f != nil {
		r.Fingerprint = f.Bytes()
	}
}

// InboxOperationRows returns the rows of the operations that an inbox accepted.
func InboxOperationRows(accepted []push.Accepted) []OperationRow {
	rows := make([]OperationRow, len(accepted))
	for i := range accepted {
		a := &accepted[i]
		rows[i] = newOperationRow(operation.AddPushNotificationResponse, &a.Operation.Envelope, operation.Completed)
		if !a.Fingerprint.IsZero() {
			rows[i].Fingerprint = a.Fingerprint.Bytes()
		}
	}
	return inOrder(rows)
}

// inOrder sorts new rows in the same order on all replicas. So two batches with the same
// CallerIds wait for each other, and do not deadlock.
func inOrder(rows []OperationRow) []OperationRow {
	slices.SortStableFunc(rows, func(a, b OperationRow) int { return bytes.Compare(a.Identity[:], b.Identity[:]) })
	if !slices.ContainsFunc(rows, func(r OperationRow) bool { return r.Fingerprint != nil }) {
		return rows // the insert leaves the column out
	}
	for i := range rows {
		if rows[i].Fingerprint == nil {
			rows[i].Fingerprint = []byte{} // nil would be NULL
		}
	}
	return rows
}

// EndedRow returns the row of a recorded operation that was settled or cancelled.
func EndedRow(e *fund.Ended) OperationRow {
	return OperationRow{
		OperationID: batch.UUID(e.OperationID), State: int64(e.State), Faults: formatFaults(e.Faults), EndedAt: batch.Instant{Time: e.At},
	}
}

// ReversedRow returns the row of an operation that was reversed.
func ReversedRow(r fund.Reversal) OperationRow {
	return OperationRow{OperationID: batch.UUID(r.OperationID), ReversalID: batch.UUID(r.ID), ReversedAt: batch.Instant{Time: r.At}}
}

// IsRefused reports whether the operation was refused at once.
func (r *OperationRow) IsRefused() bool {
	return r.State == int64(operation.Failed) && r.DueOn == ""
}

// Refused is the condition of operations o that were refused at once.
var Refused = "o." + InState(operation.Failed) + " AND o.due_on IS NULL"

// Decision converts the row.
func (r *OperationRow) Decision() (d operation.Decision, err error) {
	d = operation.Decision{
		Envelope:  r.envelope(r.OperationID),
		Operation: operation.Name(r.Operation), State: operation.State(r.State), //nolint:gosec // checked below
		Faults: ParseFaults(r.Faults),
	}
	if int64(d.Operation) != r.Operation || int64(d.State) != r.State {
		err = fmt.Errorf("operation %s: a number is out of its range", r.OperationID)
	}
	return d, err
}

// Due returns the day for which the operation was recorded, or no day.
func (r *OperationRow) Due() (due day.Day, err error) {
	if r.DueOn != "" {
		due, err = day.Parse(string(r.DueOn))
	}
	return due, err
}

// Record returns the record of the CallerId, or nil without a CallerId.
func (r *OperationRow) Record() (*idempotency.Record, error) {
	if r.Header.CallerID == "" {
		return nil, nil //nolint:nilnil // most operations may have no CallerId
	}
	key := idempotency.Key{CallerID: r.Header.CallerID, Subscription: r.Subscription, Operation: operation.Name(r.Operation)} //nolint:gosec // written by us
	caller := CallerRow{CallerID: r.Header.CallerID, OperationID: r.OperationID, Fingerprint: r.Fingerprint, State: r.State, Faults: r.Faults}
	record, err := caller.Record(key)
	return &record, err
}

// Reversal returns the reversal of the operation, or nil.
func (r *OperationRow) Reversal() *fund.Reversal {
	if r.ReversalID == (batch.UUID{}) {
		return nil
	}
	return &fund.Reversal{OperationID: operation.ID(r.OperationID), ID: operation.ID(r.ReversalID), At: r.ReversedAt.Time}
}

// formatFaults writes each fault as a line with its code, its pointer and, if any, the value
// that its detail names. The sentence of a code is part of the program, not of the record.
func formatFaults(faults []fault.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = strings.TrimSuffix(f.Code+" "+f.Pointer+" "+f.Named, " ")
	}
	return strings.Join(lines, "\n")
}

// IsFaults reports whether text is a stored form of faults, as formatFaults writes it.
func IsFaults(text string) bool { return formatFaults(ParseFaults(text)) == text }

// ParseFaults reads the stored form of faults.
func ParseFaults(text string) []fault.Fault {
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	faults := make([]fault.Fault, len(lines))
	for i, line := range lines {
		code, rest, _ := strings.Cut(line, " ")
		pointer, named, _ := strings.Cut(rest, " ")
		faults[i] = fund.RefusalNaming(code, named)
		faults[i].Pointer = pointer
	}
	return faults
}
