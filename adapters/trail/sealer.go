package trail

import (
	"context"
	"fmt"
	"strings"
	"sync"

	application "bankingapi/application/trail"
	"bankingapi/domain/proof"
)

// kept is a trail that is kept with a key, or the reason why no trail is kept. It seals the
// batches of a storage. Several replicas may do so.
type kept struct {
	ports       *application.Ports
	notary      *Notary // nil if no trail is kept
	keyFile     string
	checkpoints *Checkpoints
	missing     missing // why no trail is kept

	mu            sync.Mutex // locked while a round runs
	begun, marked bool
	followed      string // the checkpoint that the writer follows
	bound         bool   // the writer follows a checkpoint with this service's mark
}

// atOnce is how many batches are sealed in one transaction.
const atOnce = 500

// foreignError is returned if foreign batches were left out and everything else was sealed.
type foreignError struct{ application.Round }

func (e *foreignError) Error() string {
	var names []string
	for _, id := range e.LeftOut {
		names = append(names, id.String())
	}
	if e.Foreign > len(names) {
		names = append(names, "...")
	}
	return fmt.Sprintf("batches of the trail were left out, because this service did not make them for this log: %s (%d in all)."+
		" Run `bankingapi verify`", strings.Join(names, ", "), e.Foreign)
}

// seal seals everything that is not sealed yet. The first call of a process also adopts the
// rows that are older than the trail. The first call with mark marks the log. The error is a
// *foreignError if everything except foreign batches was sealed.
func (k *kept) seal(ctx context.Context, mark bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.begin(ctx); err != nil {
		return fmt.Errorf("begin the trail: %w", err)
	}
	for {
		var added application.Sealed
		round, err := k.ports.Log.Seal(ctx, atOnce, mark && !k.marked, func(state application.State, records [][]byte, hashes proof.Hashes) (application.Sealed, error) {
			err := k.checkpoints.Extends(state, hashes)
			if err != nil {
				return added, err
			}
			added, err = k.notary.Append(state, records, hashes)
			return added, err
		})
		if err != nil {
			return err
		}
		k.marked = k.marked || mark
		if round.Sealed > 0 {
			if err := k.checkpoints.Append(added.Checkpoint); err != nil {
				return fmt.Errorf("write the checkpoint to its file: %w", err)
			}
		}
		if round.Sealed < atOnce {
			// The writer does not follow newer checkpoints. A failover may lose them, and then
			// the batches that name them would look like batches of another log.
			if !k.bound {
				if err := k.follow(ctx); err != nil {
					return err
				}
				k.bound = k.marked
			}
			if round.Foreign > 0 {
				return &foreignError{round}
			}
			return nil
		}
	}
}

// begin adopts the rows that are older than the trail. If the log has lost batches that a
// checkpoint has, it adopts no rows: their leaves would make them genuine.
func (k *kept) begin(ctx context.Context) error {
	if k.begun {
		return nil
	}
	state, err := k.ports.Log.State(ctx)
	if err != nil {
		return err
	}
	if state.Size == 0 {
		err = k.checkpoints.Extends(state, k.hashes(ctx))
		if err != nil {
			return err
		}
	}
	_, err = k.ports.Origin.Adopt(ctx)
	if err != nil {
		return err
	}
	k.begun = true
	return nil
}

// canSeal returns an error if the log cannot be continued as it is. seal says so too, but only if there is
// something to seal.
func (k *kept) canSeal(ctx context.Context) error {
	state, err := k.ports.Log.State(ctx)
	if err != nil {
		return err
	}
	err = k.checkpoints.Extends(state, k.hashes(ctx))
	if err != nil {
		return err
	}
	_, err = k.notary.Append(state, nil, k.hashes(ctx))
	return err
}

// hashes reads stored hashes of the log.
func (k *kept) hashes(ctx context.Context) proof.Hashes {
	return func(indexes []int64) ([]proof.Hash, error) { return k.ports.Log.Hashes(ctx, indexes) }
}

// follow tells the writer the current state of the log. Other replicas seal the log too.
func (k *kept) follow(ctx context.Context) error {
	state, err := k.ports.Log.State(ctx)
	if err != nil || state.Checkpoint == k.followed {
		return err
	}
	base, err := k.notary.Open(state.Checkpoint)
	if err != nil {
		return err
	}
	k.followed = state.Checkpoint
	k.ports.Writer.Follow(base)
	return nil
}
