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

// OperationRow is a row of the table operations: an operation whose caller sent a CallerId.
type OperationRow struct {
	CallerID     string     `gorm:"primaryKey"`
	Subscription string     `gorm:"primaryKey"`
	Operation    int64      `gorm:"primaryKey"`
	OperationID  batch.UUID `gorm:"not null"`
	Fingerprint  []byte     `gorm:"not null"`
	State        int64      `gorm:"not null"`
	Faults       string     `gorm:"not null;default:''"`
}

// OperationKey returns a row with this key and without the other columns.
func OperationKey(k idempotency.Key) OperationRow {
	return OperationRow{CallerID: k.CallerID, Subscription: k.Subscription, Operation: int64(k.Operation)}
}

func newOperationRow(r *idempotency.Record) OperationRow {
	row := OperationKey(r.Key)
	row.OperationID, row.Fingerprint = batch.UUID(r.Outcome.ID), r.Fingerprint.Bytes()
	row.State, row.Faults = int64(r.Outcome.State), FormatFaults(r.Outcome.Faults)
	return row
}

// Key returns the key of the row.
func (r *OperationRow) Key() idempotency.Key {
	return idempotency.Key{CallerID: r.CallerID, Subscription: r.Subscription, Operation: operation.Name(r.Operation)} //nolint:gosec // written by us
}

// Record converts the row. key is the key of the row.
func (r *OperationRow) Record(key idempotency.Key) (idempotency.Record, error) {
	fingerprint, err := idempotency.ParseFingerprint(r.Fingerprint)
	if err != nil {
		return idempotency.Record{}, fmt.Errorf("operation %s: %w", r.OperationID, err)
	}
	return idempotency.Record{
		Key:         key,
		Fingerprint: fingerprint,
		Outcome: operation.Outcome{
			ID: operation.ID(r.OperationID), State: operation.State(r.State), Faults: ParseFaults(r.Faults), //nolint:gosec // written by us
		},
	}, nil
}

// OperationRows returns the rows of records in the same order on all replicas. So two batches
// with the same CallerIds wait for each other, and do not deadlock.
func OperationRows(records []*idempotency.Record) []OperationRow {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b *idempotency.Record) int { return a.Key.Compare(b.Key) })
	return Convert(sorted, newOperationRow)
}

// FormatFaults writes each fault as a line with its code, its pointer and, if any, the value
// that its detail names. The sentence of a code is part of the program, not of the record.
func FormatFaults(faults []fault.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = strings.TrimSuffix(f.Code+" "+f.Pointer+" "+f.Named, " ")
	}
	return strings.Join(lines, "\n")
}

// IsFaults reports whether text is a stored form of faults, as FormatFaults writes it.
func IsFaults(text string) bool { return FormatFaults(ParseFaults(text)) == text }

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
