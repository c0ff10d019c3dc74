package protocol

// The phases that Refused RETIRED names. Only for these, together with a revision, does an agent
// stop its workload.
const (
	PhaseDeleting = "deleting" // the record exists and is being deleted
	PhaseGone     = "gone"     // the record was deleted on purpose, and a note says so
)
