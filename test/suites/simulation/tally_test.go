package simulation

// Tally counts what happened, so that a report can say how much was tried.
type Tally struct {
	Events, Operations int
	Days               int // business days with a request or a settlement
	Seen               [situations]int
}

// Situation is something that must occur in the runs for them to be a useful
// test.
type Situation uint8

// The situations.
const (
	aBatchOfMany Situation = iota
	aBatchRunAgainOneByOne
	aReplay
	aReplayAfterUnknown
	anotherContent
	anUnknownWithEffect
	anUnknownWithoutEffect
	aTimeOut
	aConflictRunAgain
	aFullQueue
	aStoppingReplica
	aCrash
	aCrashAfterCommit
	aCallerThatLeftTheQueue
	aCallerThatLeftTooLate
	aRefusal
	aRefusedArray
	aRecording
	aDueCompleted
	aDueFailed
	aDueHeld
	aDueNoLongerDue
	aDueOfAnotherReplica
	aDueBesideANewOne
	aSettlementBesideSales
	aPoisonedRequest
	aPoisonedDue
	aPanic
	aDayThatPassedInTheQueue
	aMessageSentTwice
	aClosedDay
	aCutOff
	anOutcomeRead
	situations
)

var situationNames = [situations]string{
	aBatchOfMany:             "batches of many operations",
	aBatchRunAgainOneByOne:   "batches retried one by one",
	aReplay:                  "repeats",
	aReplayAfterUnknown:      "repeats after an unknown outcome",
	anotherContent:           "CallerIds used with other content",
	anUnknownWithEffect:      "unknown outcomes, with effect",
	anUnknownWithoutEffect:   "unknown outcomes, without effect",
	aTimeOut:                 "batches that timed out",
	aConflictRunAgain:        "transactions retried after a conflict",
	aFullQueue:               "full queues",
	aStoppingReplica:         "requests to a stopping replica",
	aCrash:                   "crashes",
	aCrashAfterCommit:        "crashes between commit and answer",
	aCallerThatLeftTheQueue:  "callers that left the queue",
	aCallerThatLeftTooLate:   "callers that left after their batch began",
	aRefusal:                 "refusals",
	aRefusedArray:            "refused arrays",
	aRecording:               "sales recorded for a later day",
	aDueCompleted:            "recorded sales completed",
	aDueFailed:               "recorded sales failed",
	aDueHeld:                 "due sales held by another transaction",
	aDueNoLongerDue:          "due sales that were no longer due",
	aDueOfAnotherReplica:     "due sales that another round had settled",
	aDueBesideANewOne:        "due sales beside new ones in one transaction",
	aSettlementBesideSales:   "settlements beside a transaction of sales",
	aPoisonedRequest:         "poisoned requests",
	aPoisonedDue:             "poisoned due sales",
	aPanic:                   "panics",
	aDayThatPassedInTheQueue: "days that passed in the queue",
	aMessageSentTwice:        "messages sent again",
	aClosedDay:               "sales for closed days",
	aCutOff:                  "sales after the cut-off",
	anOutcomeRead:            "outcomes read while others ended",
}

// String returns the plural name of the situation.
func (s Situation) String() string { return situationNames[s] }

// Add adds another tally to t.
func (t *Tally) Add(o Tally) {
	t.Events += o.Events
	t.Operations += o.Operations
	t.Days += o.Days
	for i, n := range o.Seen {
		t.Seen[i] += n
	}
}

func (w *world) saw(s Situation) { w.tally.Seen[s]++ }
