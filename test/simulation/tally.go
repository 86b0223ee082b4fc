package simulation

// Tally counts what happened, so that a report can say how much was tried.
type Tally struct {
	Events, Operations int
	Days               int // of the bank, on which something was asked or settled
	Seen               [situations]int
}

// Situation is something that the runs have to get into, or they prove little.
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
	aPoisonedRequest
	aPoisonedDue
	aPanic
	aDayThatPassedInTheQueue
	aMessageSentTwice
	situations
)

var situationNames = [situations]string{
	aBatchOfMany:             "batches of many operations",
	aBatchRunAgainOneByOne:   "batches run again one by one",
	aReplay:                  "repeats answered",
	aReplayAfterUnknown:      "repeats after an unknown outcome",
	anotherContent:           "CallerIds used for another content",
	anUnknownWithEffect:      "unknown outcomes, with effect",
	anUnknownWithoutEffect:   "unknown outcomes, without effect",
	aTimeOut:                 "batches out of time",
	aConflictRunAgain:        "transactions run again after a conflict",
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
	aDueHeld:                 "due sales held by somebody else",
	aDueNoLongerDue:          "due sales whose day was not there any more",
	aDueOfAnotherReplica:     "due sales that another round had settled",
	aPoisonedRequest:         "poisoned requests",
	aPoisonedDue:             "poisoned due sales",
	aPanic:                   "panics",
	aDayThatPassedInTheQueue: "days that passed in the queue",
	aMessageSentTwice:        "messages sent again",
}

// String is the situation in plural.
func (s Situation) String() string { return situationNames[s] }

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Events += o.Events
	t.Operations += o.Operations
	t.Days += o.Days
	for i, n := range o.Seen {
		t.Seen[i] += n
	}
}

func (w *world) saw(s Situation) { w.tally.Seen[s]++ }
