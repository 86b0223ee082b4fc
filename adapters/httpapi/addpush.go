package httpapi

import (
	"context"

	"bankingapi/domain/decimal"
	"bankingapi/domain/fault"
	"bankingapi/domain/operation"
	"bankingapi/domain/push"
	"bankingapi/domain/subscription"
)

// Adder is the use case AddPushNotificationResponse.
type Adder interface {
	// Add carries the operation out. Its errors are of the kinds of package
	// fault, and each kind is a status. The parameters are the API's again when
	// Add returns; the texts in them may be kept.
	Add(ctx context.Context, caller *subscription.Subscription, header operation.Header, parameters []push.Fields) (operation.Outcome, error)
	// Faults are the rules the request breaks, as Add would report them.
	Faults(header operation.Header, parameters []push.Fields) []fault.Fault
}

func newAddPush(a *api, adder Adder) *endpoint[push.Fields] {
	return &endpoint[push.Fields]{
		api:       a,
		operation: operation.AddPushNotificationResponse,
		members:   requestMembers(pushMembers, a.ParametersLimit),
		do:        adder.Add,
		faults:    adder.Faults,
	}
}

// maxTranData is how many items of TranData are looked at; the rule is the
// domain's.
const maxTranData = 100

// pushMembers is a push notification record (the contract, section 4).
var pushMembers = []member[push.Fields]{
	text("ExternalApplicationCode", func(f *push.Fields) *string { return &f.ExternalApplicationCode }),
	text("ExternalTranCode", func(f *push.Fields) *string { return &f.ExternalTranCode }),
	text("UserId", func(f *push.Fields) *string { return &f.UserID }),
	text("PushId", func(f *push.Fields) *string { return &f.PushID }),
	number("PushInteractionId", func(f *push.Fields) *decimal.Decimal { return &f.PushInteractionID }),
	number("Platform", func(f *push.Fields) *decimal.Decimal { return &f.Platform }),
	text("Subject", func(f *push.Fields) *string { return &f.Subject }),
	text("Content", func(f *push.Fields) *string { return &f.Content }),
	text("DeepLinkUrl", func(f *push.Fields) *string { return &f.DeepLinkURL }),
	number("SendStatus", func(f *push.Fields) *decimal.Decimal { return &f.SendStatus }),
	text("SendDate", func(f *push.Fields) *string { return &f.SendDate }),
	array("TranData", func(f *push.Fields) *[]push.TranDataItem { return &f.TranData }, maxTranData, []member[push.TranDataItem]{
		text("Code", func(i *push.TranDataItem) *string { return &i.Code }),
		text("Name", func(i *push.TranDataItem) *string { return &i.Name }),
	}),
}
