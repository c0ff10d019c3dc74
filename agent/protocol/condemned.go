package protocol

// The phases that Refused RETIRED names. An agent stops its workload for these, together with a
// revision, and for no other.
const (
	PhaseDeleting = "deleting" // the record exists and is being deleted
	PhaseGone     = "gone"     // the record was deleted on purpose, and a note says so
)
