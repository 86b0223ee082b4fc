package tables

import (
	"fmt"
	"slices"
	"strings"

	"bankingapi/adapters/storage/batch"
	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/idempotency"
	"bankingapi/domain/operation"
)

// OperationRow is a row of the table operations: an operation whose caller gave
// a CallerId.
type OperationRow struct {
	CallerID     string     `gorm:"primaryKey"`
	Subscription string     `gorm:"primaryKey"`
	Operation    int64      `gorm:"primaryKey"`
	OperationID  batch.UUID `gorm:"not null"`
	Fingerprint  []byte     `gorm:"not null"`
	State        int64      `gorm:"not null"`
	Faults       string     `gorm:"not null;default:''"`
}

type operations struct{ Statements[OperationRow] }

func operationKey(k idempotency.Key) OperationRow {
	return OperationRow{CallerID: k.CallerID, Subscription: k.Subscription, Operation: int64(k.Operation)}
}

func newOperationRow(r *idempotency.Record) OperationRow {
	row := operationKey(r.Key)
	row.OperationID = batch.UUID(r.ID)
	row.Fingerprint = r.Fingerprint.Bytes()
	row.State = int64(r.Outcome.State)
	row.Faults = formatFaults(r.Outcome.Faults)
	return row
}

// Record is the row as the record of that key.
func (r *OperationRow) Record(key idempotency.Key) (idempotency.Record, error) {
	fingerprint, err := idempotency.ParseFingerprint(r.Fingerprint)
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("operation %s: %w", r.OperationID, err)
	}
	return idempotency.Record{
		Key:         key,
		ID:          operation.ID(r.OperationID),
		Fingerprint: fingerprint,
		Outcome:     operation.Outcome{State: operation.State(r.State), Faults: ParseFaults(r.Faults)}, //nolint:gosec // written by us
	}, nil
}

// Load finds the operations of the keys and puts them into the register.
func (o *operations) Load(keys []idempotency.Key, register *idempotency.Register) batch.Request {
	request := o.Find.Request(Convert(keys, operationKey), func(i int, row *OperationRow) error {
		record, err := row.Record(keys[i])
		if err == nil {
			register.Load(record)
		}
		return err
	})
	request.Settled = true
	return request
}

// OperationRows are the rows of records in one order for all replicas: two
// batches with the same CallerIds wait for each other instead of deadlocking.
func OperationRows(records []*idempotency.Record) []OperationRow {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b *idempotency.Record) int { return a.Key.Compare(b.Key) })
	return Convert(sorted, newOperationRow)
}

// formatFaults writes refusals as lines of code, pointer and what the detail names,
// if it names something. The sentence of a code belongs to the program, not to the
// record.
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

// ParseFaults reads refusals as they are stored.
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
