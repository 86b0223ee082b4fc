package sandbox

import (
	"context"
	"strings"

	"bankingapi/application/operator"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/subscription"
)

const keyHeader = "Ocp-Apim-Subscription-Key"

// suffixes of a key give its caller the limits that a bank gives to some callers.
var suffixes = map[string]func(*subscription.Subscription){
	"-push-only": func(s *subscription.Subscription) {
		s.Operations = []string{operation.AddPushNotificationResponse.String()}
	},
	"-mobile": func(s *subscription.Subscription) { s.Channel = "MOBILE" },
}

// callers recognises callers by their keys.
type callers struct {
	// find returns the active subscription with a key, or nil if there is none.
	find func(ctx context.Context, key string) (*subscription.Subscription, error)
	// visitor is the key of requests for a new key. Only this process knows it.
	visitor string
}

// Find returns the caller with the key. The error is fault.Unavailable if the world of the key
// cannot be opened, and fault.Busy if too many worlds are in use.
func (c *callers) Find(ctx context.Context, presented string) (*subscription.Subscription, error) {
	if cause, failed := ctx.Value(worldErrorKey{}).(error); failed {
		if fault.KindOf(cause) == fault.Busy {
			return nil, cause
		}
		return nil, fault.Wrap(fault.Unavailable, cause, "The world of this key cannot be opened:")
	}
	if presented == c.visitor {
		return &subscription.Subscription{Name: "visitor"}, nil
	}
	key := strings.TrimPrefix(presented, operator.SandboxKeyPrefix)
	for suffix, change := range suffixes {
		if plain, ok := strings.CutSuffix(key, suffix); ok {
			found, err := c.find(ctx, plain)
			if found == nil || err != nil {
				return nil, err
			}
			caller := *found // found is shared
			change(&caller)
			return &caller, nil
		}
	}
	return c.find(ctx, key)
}
