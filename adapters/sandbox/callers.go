package sandbox

import (
	"context"
	"strings"

	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

const keyHeader = "Ocp-Apim-Subscription-Key"

// The suffixes of a key that make its caller another one.
const (
	// PushOnly is a caller that may only store push messages.
	PushOnly = "-push-only"
	// Mobile is a caller with the Channel MOBILE defined.
	Mobile = "-mobile"
)

// Callers recognises callers by their keys. A key may have a suffix, so that a
// partner with one key meets the limits that a bank gives to other callers.
type Callers struct{ find Find }

// Find returns the active subscription with a key. It returns nil if no active
// subscription has the key.
type Find func(ctx context.Context, presented string) (*subscription.Subscription, error)

// NewCallers returns the callers of a sandbox. find knows the keys without
// suffix.
func NewCallers(find Find) Callers { return Callers{find} }

// Find returns the caller with the key.
func (c Callers) Find(ctx context.Context, presented string) (*subscription.Subscription, error) {
	if key, ok := strings.CutSuffix(presented, PushOnly); ok {
		return c.changed(ctx, key, func(s *subscription.Subscription) {
			s.Grant(operation.AddPushNotificationResponse.String())
		})
	}
	if key, ok := strings.CutSuffix(presented, Mobile); ok {
		return c.changed(ctx, key, func(s *subscription.Subscription) { s.Channel = "MOBILE" })
	}
	return c.find(ctx, presented)
}

// Name names nobody: the one key of a sandbox is always active.
func (Callers) Name(string) string { return "" }

func (c Callers) changed(ctx context.Context, key string, change func(*subscription.Subscription)) (*subscription.Subscription, error) {
	found, err := c.find(ctx, key)
	if found == nil || err != nil {
		return nil, err
	}
	caller := *found // shared
	change(&caller)
	return &caller, nil
}
