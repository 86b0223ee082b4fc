package operation

// Register is the part of all known operations that a batch touches. It
// decides what a CallerId means (the contract, section 6) and collects what
// the batch adds to or changes in it. It is not safe for concurrent use.
type Register struct {
	known   map[Key]*Known
	added   []*Known
	changed []*Known
}

// Load puts an operation into the register as storage has it.
func (r *Register) Load(k Known) {
	if r.known == nil {
		r.known = make(map[Key]*Known)
	}
	r.known[k.Key] = &k
}

// Find holds a request against the operation of the same key. found is false
// for a new operation. For a repeat, the outcome is the operation's as it is
// now, marked Replayed; the error is Reused when the content differs.
func (r *Register) Find(key Key, f Fingerprint) (outcome Outcome, found bool, err error) {
	k, found := r.known[key]
	if !found {
		return Outcome{}, false, nil
	}
	if k.Fingerprint != f {
		return Outcome{}, true, Reused()
	}
	outcome = k.Outcome
	outcome.Replayed = true
	return outcome, true, nil
}

// Add records a new operation, which Find finds from now on.
func (r *Register) Add(k Known) {
	r.Load(k)
	r.added = append(r.added, r.known[k.Key])
}

// Change gives a loaded operation the outcome it came to. A key that was not
// loaded is left alone.
func (r *Register) Change(key Key, outcome Outcome) {
	if k, ok := r.known[key]; ok {
		k.Outcome = outcome
		r.changed = append(r.changed, k)
	}
}

// Added are the operations to be written, in the order of their adding.
func (r *Register) Added() []*Known { return r.added }

// Changed are the loaded operations whose outcome is to be written.
func (r *Register) Changed() []*Known { return r.changed }
