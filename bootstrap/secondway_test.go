package bootstrap_test

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"bankingapi/adapters/httpapi"
	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/application/store"
	"bankingapi/bootstrap"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
	"bankingapi/test/fake"
)

// A second way in: a reader of a queue stores the messages that it receives, with the rules
// and the callers of the API. A message is delivered again until it is acknowledged, so it
// needs a CallerId: then a second delivery has no second effect.
func ExampleApp_Caller() {
	ctx := context.Background()
	settings := bootstrap.DefaultSettings()
	settings.Storage.Driver = "memory" // a storage of the host: see fake.Store for its ports
	app, err := bootstrap.Open(ctx, settings, bootstrap.WithLogger(zap.NewNop()),
		bootstrap.WithDriver("memory", func(_ context.Context, o store.Options) (*store.Store, error) {
			return fake.NewStore().Ports(nil, o.Now), nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer app.Close(ctx)
	manager, err := app.Manager(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	key, _, _ := manager.Create(ctx, subscription.Subscription{Name: "queue"})

	record := httpapi.AddPush(app.Adder()).Members // how a record of the API is read
	receive := func(key, messageID, body string) string {
		caller, err := app.Caller(ctx, key)
		switch {
		case err != nil:
			return "deliver again: " + err.Error()
		case caller == nil || !caller.MayCall(operation.AddPushNotificationResponse.String()):
			return "reject: the key may not do this"
		}
		var reader strictjson.Reader
		var fields push.Fields
		reader.Body.WriteString(body)
		strictjson.Decode(&reader, record, &fields)
		if broken := reader.Faults(); len(broken) > 0 {
			return "reject: " + broken[0].Pointer + " " + broken[0].Code
		}
		outcome, err := app.Adder().Add(ctx, caller, operation.Header{CallerID: messageID}, []push.Fields{fields})
		if err == nil {
			return fmt.Sprintf("acknowledge: %s, replayed %t", outcome.State, outcome.Replayed)
		}
		switch fault.KindOf(err) {
		case fault.Busy, fault.Unavailable, fault.Indeterminate:
			return "deliver again: " + err.Error()
		default: // Invalid, Forbidden, Conflict; Internal is a case for a person
			return "reject: " + err.Error()
		}
	}
	const message = `{"ExternalApplicationCode":"APP","UserId":"u","PushId":"p","Platform":65,"SendStatus":1}`
	fmt.Println(receive(key.Reveal(), "message-1", message))
	fmt.Println(receive(key.Reveal(), "message-1", message))
	fmt.Println(receive(key.Reveal(), "message-2", `{"UserID":"u"}`))
	fmt.Println(receive("no key", "message-3", message))
	// Output:
	// acknowledge: completed, replayed false
	// acknowledge: completed, replayed true
	// reject: /UserID unknown-member
	// reject: the key may not do this
}
