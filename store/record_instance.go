package store

import "time"

// Instance is the durable record of one machine.
type Instance struct {
	Schema  int       `json:"schema"`
	ID      string    `json:"id"`
	Group   string    `json:"group"`
	Slot    int       `json:"slot"`
	Phase   Phase     `json:"phase"`
	Managed bool      `json:"managed"`
	Since   time.Time `json:"since"`   // when it entered its phase
	Created time.Time `json:"created"` // when the record was made

	Template string       `json:"template"` // hash of what the machine was made from
	Spec     InstanceSpec `json:"spec"`     // what it was made from, so that any leader can ask again
	Zone     string       `json:"zone,omitempty"`

	Called  bool   `json:"called,omitempty"` // a provider may have been asked to create it
	Ref     string `json:"ref,omitempty"`    // the provider's own name of the machine
	Address string `json:"address,omitempty"`

	Replaces  string     `json:"replaces,omitempty"`  // the instance whose place in the slot it takes
	Condemned *Condemned `json:"condemned,omitempty"` // ordered to go, replacement first
	Protected string     `json:"protected,omitempty"` // "", "removal" or "heal" (REC-13)
	Counted   bool       `json:"counted,omitempty"`   // its failure is in its slot's count (FLAP-1)

	Last Decision `json:"last"` // the decision that wrote this record
}

// InstanceSpec is the part of a group's spec that a machine is made from.
type InstanceSpec struct {
	Provider            string            `json:"provider"`
	Template            Template          `json:"template"`
	Workload            Workload          `json:"workload"`
	Vars                map[string]string `json:"vars,omitempty"`
	Report              ReportSpec        `json:"report"`
	RegistrationTimeout Duration          `json:"registration_timeout"`
	MaxChecking         Duration          `json:"max_checking_health_duration"`
	StopTimeout         Duration          `json:"stop_timeout"`
}

// Condemned says that an operator wants the instance gone.
type Condemned struct {
	By  string    `json:"by"`
	Why string    `json:"why"`
	At  time.Time `json:"at"`
	Now bool      `json:"now,omitempty"` // at once, without a replacement first
}

// Decision is why something was done.
type Decision struct {
	Rule     string    `json:"rule"`
	Why      string    `json:"why"`
	Revision Revision  `json:"revision"` // of the picture it was made on
	At       time.Time `json:"at"`
}

// Slot is one of the places that a group keeps filled. It outlives the instances in it.
type Slot struct {
	Schema   int       `json:"schema"`
	Group    string    `json:"group"`
	Number   int       `json:"number"`
	Failures []Failure `json:"failures,omitempty"` // oldest first, the newest few (FLAP-1)
	Flapping int       `json:"flapping,omitempty"` // how often it was made to wait since it began to flap
	Retry    *Timer    `json:"retry,omitempty"`    // flapping: no new replacement before it ends
}

// Failure is one failure counted against a slot.
type Failure struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Verdict  Verdict   `json:"verdict"`
	Why      string    `json:"why"`
}

// Timer is a time to wait, as start and duration: SAFE-13.
type Timer struct {
	Start time.Time `json:"start"`
	For   Duration  `json:"for"`
}
