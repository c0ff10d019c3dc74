package store

import "time"

// Gone notes that a key was deleted on purpose (SAFE-15). It is written in the transaction that
// deletes the key, on one of the journal's leases. A record that is absent and has no such note was
// lost. An order that its giver may repeat leaves a note too (OnceID), without Instance: that would
// stand for a record that may be absent.
type Gone struct {
	Schema   int       `json:"schema"`
	Revision Revision  `json:"revision"` // the deleted key's last modification
	Rule     string    `json:"rule"`
	Why      string    `json:"why"`
	By       string    `json:"by,omitempty"` // the operator who declared the record gone; "" for the leader
	Group    string    `json:"group,omitempty"`
	Instance string    `json:"instance,omitempty"`
	Slot     *int      `json:"slot,omitempty"` // nil for an instance on demand
	At       time.Time `json:"at"`
}

// Claim is what a coordinator certified about an instance while its record was readable (SAFE-17).
// The agent keeps the sealed form and presents it with every hello.
type Claim struct {
	Schema   int       `json:"schema"`
	Shard    string    `json:"shard"` // the shard's random ID
	Instance string    `json:"instance"`
	Group    string    `json:"group"`
	Slot     int       `json:"slot"` // -1 for an instance on demand
	Managed  bool      `json:"managed"`
	Template string    `json:"template"` // hash
	Config   string    `json:"config,omitempty"`
	Relaunch int       `json:"relaunch,omitempty"`
	Boot     string    `json:"boot,omitempty"`
	Provider string    `json:"provider"`
	Spot     bool      `json:"spot,omitempty"`
	Fallback bool      `json:"fallback,omitempty"` // see Instance.Fallback
	Zone     string    `json:"zone,omitempty"`
	Ref      string    `json:"ref,omitempty"`
	Created  time.Time `json:"created"`
	Since    time.Time `json:"since"` // when it was sealed
}

// Extra is a machine that a provider lists with the shard's tag and that has no record (REC-8). The
// leader keeps these keys up to date, on the lease of its session, so that operators can see and
// adopt such machines.
type Extra struct {
	Schema   int       `json:"schema"`
	Instance string    `json:"instance"`
	Group    string    `json:"group,omitempty"`
	Provider string    `json:"provider"`
	Zone     string    `json:"zone,omitempty"`
	Ref      string    `json:"ref,omitempty"`
	State    string    `json:"state,omitempty"` // in the provider's words
	Since    time.Time `json:"since"`
	Gone     bool      `json:"gone,omitempty"` // its record was deleted on purpose: it is removed after orphan_grace
	// Foreign: the provider did not make it. It is neither adopted nor removed.
	Foreign bool `json:"foreign,omitempty"`
}

// Damaged is a record that was lost or cannot be read (SAFE-15, SAFE-16). The leader keeps a
// group's in its status, so that they outlive a change of leader.
type Damaged struct {
	Key      string    `json:"key"`
	Instance string    `json:"instance,omitempty"`
	Slot     *int      `json:"slot,omitempty"` // nil where it is not known, or on demand
	OnDemand bool      `json:"on_demand,omitempty"`
	What     string    `json:"what"`           // DamageLost or DamageUnreadable
	Why      string    `json:"why"`            // Cause as a sentence, in records
	Cause    Cause     `json:"cause,omitzero"` // a release before wrote Why alone
	Since    time.Time `json:"since"`
	Last     Revision  `json:"last,omitempty"` // at which the record could still be read; 0 if that is not known
	Seen     Revision  `json:"seen,omitempty"` // of the cache that showed the damage first
}

// Reviewed reports whether an operator released a hold knowing of this damage.
func (d *Damaged) Reviewed(s *Shard) bool { return s.Reviewed != nil && d.Seen <= s.Reviewed.Seen }

// The kinds of damage.
const (
	DamageLost       = "lost"
	DamageUnreadable = "unreadable"
)
