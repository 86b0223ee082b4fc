package storage

import (
	"slices"
	"strings"

	"bankingapi/domain/fault"
	"bankingapi/domain/fund"
	"bankingapi/domain/operation"
)

// findOperations loads the operations known by the keys into the register.
func (s *Store) findOperations(keys []operation.Key, register *operation.Register) Request {
	rows := newRows(s.statements.findOperation.columns, len(keys))
	for _, k := range keys {
		rows.text(k.CallerID).text(k.Subscription).int(int64(k.Operation))
	}
	return s.request(s.statements.findOperation, rows, func(scan Scan) error {
		var id, fingerprint []byte
		var state int64
		var faults string
		key, err := scan(&id, &fingerprint, &state, &faults)
		if err != nil {
			return err
		}
		register.Load(operation.Known{
			Key:         keys[key],
			ID:          operation.ID(id),
			Fingerprint: operation.Fingerprint(fingerprint),
			Outcome:     operation.Outcome{State: operation.State(state), Faults: parseFaults(faults)}, //nolint:gosec // written by us
		})
		return nil
	})
}

// writeOperations writes what a batch added to and changed in the register, in
// one order for all replicas, so that two with the same CallerIds wait for each
// other instead of deadlocking.
func (s *Store) writeOperations(register *operation.Register) (inserted, changed Request) {
	byKey := func(a, b *operation.Known) int { return a.Key.Compare(b.Key) }
	added := slices.SortedFunc(slices.Values(register.Added()), byKey)
	insert := newRows(s.statements.insertOperation.columns, len(added))
	for _, k := range added {
		insert.text(k.Key.CallerID).text(k.Key.Subscription).int(int64(k.Key.Operation)).
			id(k.ID).blob(k.Fingerprint[:]).int(int64(k.Outcome.State)).text(formatFaults(k.Outcome.Faults))
	}
	settled := slices.SortedFunc(slices.Values(register.Changed()), byKey)
	change := newRows(s.statements.changeOperation.columns, len(settled))
	for _, k := range settled {
		change.text(k.Key.CallerID).text(k.Key.Subscription).int(int64(k.Key.Operation)).
			int(int64(k.Outcome.State)).text(formatFaults(k.Outcome.Faults))
	}
	return s.request(s.statements.insertOperation, insert, nil), s.request(s.statements.changeOperation, change, nil)
}

// formatFaults writes refusals as lines of code and pointer: the sentence that
// goes with a code is the bank's, not the record's.
func formatFaults(faults []fault.Fault) string {
	if len(faults) == 0 {
		return ""
	}
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = f.Code + " " + f.Pointer
	}
	return strings.Join(lines, "\n")
}

func parseFaults(text string) []fault.Fault {
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	faults := make([]fault.Fault, len(lines))
	for i, line := range lines {
		code, pointer, _ := strings.Cut(line, " ")
		faults[i] = fund.Refusal(code)
		faults[i].Pointer = pointer
	}
	return faults
}
