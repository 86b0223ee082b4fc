package httpapi

import (
	"context"

	"bankingapi/adapters/httpapi/strictjson"
	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Adder is the use case AddPushNotificationResponse. Its methods are Do, Faults and Busy
// of an Operation.
type Adder interface {
	Add(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []push.Fields) (operation.Outcome, error)
	Faults(header operation.Header, parameters []push.Fields) []fault.Fault
	Busy(caller *subscription.Subscription) error
}

// AddPush describes the operation AddPushNotificationResponse.
func AddPush(adder Adder) Operation[push.Fields] {
	return Operation[push.Fields]{
		Name:    operation.AddPushNotificationResponse.String(),
		Members: pushMembers,
		Do:      adder.Add,
		Faults:  adder.Faults,
		Busy:    adder.Busy,
		Example: `{"Header":{},"Parameters":[{"ExternalApplicationCode":"MOBILE","UserId":"user-1","PushId":"push-1","Platform":65,"Subject":"Hello","Content":"Your order was carried out.","SendStatus":1,"SendDate":"2026-11-20"}]}`,
	}
}

// maxTranData is how many items of TranData are looked at; the rule is the domain's.
const maxTranData = 100

// pushMembers is a push notification record (the contract, section 4).
var pushMembers = []strictjson.Member[push.Fields]{
	strictjson.Text("ExternalApplicationCode", func(f *push.Fields) *string { return &f.ExternalApplicationCode }),
	strictjson.Text("ExternalTranCode", func(f *push.Fields) *string { return &f.ExternalTranCode }),
	strictjson.Text("UserId", func(f *push.Fields) *string { return &f.UserID }),
	strictjson.Text("PushId", func(f *push.Fields) *string { return &f.PushID }),
	strictjson.Number("PushInteractionId", func(f *push.Fields) *decimal.Decimal { return &f.PushInteractionID }),
	strictjson.Number("Platform", func(f *push.Fields) *decimal.Decimal { return &f.Platform }),
	strictjson.Text("Subject", func(f *push.Fields) *string { return &f.Subject }),
	strictjson.Text("Content", func(f *push.Fields) *string { return &f.Content }),
	strictjson.Text("DeepLinkUrl", func(f *push.Fields) *string { return &f.DeepLinkURL }),
	strictjson.Number("SendStatus", func(f *push.Fields) *decimal.Decimal { return &f.SendStatus }),
	strictjson.Text("SendDate", func(f *push.Fields) *string { return &f.SendDate }),
	strictjson.Array("TranData", func(f *push.Fields) *[]push.TranDataItem { return &f.TranData }, maxTranData, []strictjson.Member[push.TranDataItem]{
		strictjson.Text("Code", func(i *push.TranDataItem) *string { return &i.Code }),
		strictjson.Text("Name", func(i *push.TranDataItem) *string { return &i.Name }),
	}),
}
