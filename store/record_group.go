package store

import "time"

// Request is an operator's order to the leader (REC-16).
type Request struct {
	Schema   int         `json:"schema"`
	ID       string      `json:"id"`
	Kind     RequestKind `json:"kind"`
	Group    string      `json:"group,omitempty"`
	Instance string      `json:"instance,omitempty"`
	By       string      `json:"by"`
	At       time.Time   `json:"at"`
}

// RequestKind says what an operator wants.
type RequestKind string

// The kinds of request.
const (
	// RequestReplace: a replacement first, then the instance goes.
	RequestReplace RequestKind = "replace"
	// RequestDelete: the instance goes now; its slot is filled again.
	RequestDelete RequestKind = "delete"
)

// JournalEntry is one entry of the journal: what was decided, by which rule, on what evidence.
type JournalEntry struct {
	Schema   int       `json:"schema"`
	At       time.Time `json:"at"`
	By       string    `json:"by"` // the replica
	Rule     string    `json:"rule"`
	What     string    `json:"what"` // a sentence for people
	Why      string    `json:"why,omitempty"`
	Group    string    `json:"group,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Slot     *int      `json:"slot,omitempty"`
	From     Phase     `json:"from,omitempty"`
	To       Phase     `json:"to,omitempty"`
	Verdict  Verdict   `json:"verdict,omitempty"`
	Evidence []string  `json:"evidence,omitempty"`
	Revision Revision  `json:"revision"` // of the picture it was decided on
}

// Status is what the leader says of a group.
type Status struct {
	Schema           int             `json:"schema"`
	Group            string          `json:"group"`
	Accepted         *Group          `json:"accepted,omitempty"` // the spec in force
	AcceptedRevision Revision        `json:"accepted_revision,omitempty"`
	Invalid          *InvalidSpec    `json:"invalid,omitempty"`
	State            GroupState      `json:"state"`
	Health           int             `json:"health_percent"`
	Healthy          int             `json:"healthy"` // instances that run and are healthy
	OK               bool            `json:"ok"`
	Since            time.Time       `json:"since"` // of State, Health and what is blocked
	Phases           map[Phase]int   `json:"phases,omitempty"`
	Verdicts         map[Verdict]int `json:"verdicts,omitempty"`
	Outdated         int             `json:"outdated,omitempty"`
	Blocked          []Blocked       `json:"blocked,omitempty"`
}

// InvalidSpec says why the spec in groups/ is not in force (SAFE-10).
type InvalidSpec struct {
	Revision Revision `json:"revision"` // 0: the key is missing
	Why      string   `json:"why"`
}

// Blocked is work that ought to be done and is not, and why.
type Blocked struct {
	Rule     string `json:"rule"`
	What     string `json:"what"`
	Why      string `json:"why"`
	Until    string `json:"until,omitempty"` // what would free it
	Instance string `json:"instance,omitempty"`
}

// GroupState is the state of a group as a whole (REC-11).
type GroupState string

// The states of a group.
const (
	GroupStarted  GroupState = "started"
	GroupPaused   GroupState = "paused"
	GroupDeleting GroupState = "deleting"
	GroupErrored  GroupState = "errored"
	GroupRefused  GroupState = "refused" // its spec is wrong, and none was ever in force
)
