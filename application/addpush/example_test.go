package addpush_test

import (
	"context"
	"fmt"
	"time"

	"bankingapi/application/addpush"
	"bankingapi/application/commit"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// A Go program stores a notification. It implements Inboxes itself; this example
// uses the store of the tests.
func ExampleAdder_Store() {
	ids := new(fake.IDs)
	adder, _ := addpush.New(fake.NewStore().Inboxes(nil), addpush.Options{
		ParametersLimit: 1000,
		Commit:          commit.Limits{Batch: 256, Queue: 4096, Timeout: 5 * time.Second},
		Now:             func() time.Time { return time.Now().UTC().Truncate(time.Microsecond) },
		NewID:           ids.Next,
	})
	ctx := context.Background()
	defer adder.Close(ctx)

	n, faults := push.FromValues(push.Values{
		ExternalApplicationCode: "LOANS",
		UserID:                  "user-7",
		PushID:                  "push-1",
		Platform:                push.Android,
		Subject:                 "Your loan was approved",
		Sent:                    true,
	})
	if faults != nil {
		fmt.Println(faults)
		return
	}
	caller := &subscription.Subscription{Name: "loans"}
	outcome, err := adder.Store(ctx, caller, operation.Header{CallerID: "loan-42"}, []push.Notification{n})
	fmt.Println(outcome.State, err)
	// Output: completed <nil>
}
