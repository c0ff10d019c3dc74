package protocol

// The phases that Refused RETIRED names. An agent stops its workload for these, together with a
// revision, and for no other.
const (
	PhaseDeleting = "deleting" // the record is there, and says so
	PhaseGone     = "gone"     // the record was deleted on purpose, and a note says so
)
