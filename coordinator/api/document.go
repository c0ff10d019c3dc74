package api

import (
	"encoding/json"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// Shard is a shard with its problems and groups.
type Shard struct {
	view.Truth
	Revision store.Revision  `json:"revision"`
	Base     store.Revision  `json:"record_revision"` // the ETag
	Hold     *store.Hold     `json:"hold,omitempty"`
	Freeze   *store.Freeze   `json:"freeze,omitempty"`
	Problems []story.Problem `json:"problems"`
	Groups   []Row           `json:"groups"`
}

// Row is a group in a list.
type Row struct {
	Name     string         `json:"name"`
	Revision store.Revision `json:"spec_revision"` // the ETag of the group; 0: it has no spec
	Static   bool           `json:"static,omitempty"`
	State    string         `json:"state"`
	Health   *int           `json:"health_percent,omitempty"`
	Run      string         `json:"run"` // running / size
	Now      string         `json:"now"` // what is wrong, or in progress
	Attends  bool           `json:"needs_attention,omitempty"`
	Since    time.Time      `json:"since,omitzero"`
}

// Group is the state of a group.
type Group struct {
	Row
	Stale      bool             `json:"stale"`
	StateAt    store.Revision   `json:"revision"`
	Problems   []story.Problem  `json:"problems"`
	InProgress []string         `json:"in_progress"`
	Blocked    []Blocked        `json:"blocked"`
	Upcoming   *story.Upcoming  `json:"next_look,omitempty"` // what is decided next; none: nothing is due
	Waits      []Blocked        `json:"waits"`               // planned work that waits as intended
	Planned    []view.Planned   `json:"planned,omitempty"`   // when planned work may begin; none: at any time
	Roll       *view.Roll       `json:"roll,omitempty"`
	Scale      *view.Scale      `json:"scale,omitempty"`
	Trend      []view.Moment    `json:"trend"` // the last hour, as this replica saw it
	Protected  []view.Protected `json:"protected"`
	Busy       []view.Busy      `json:"busy"`
	Counts     map[string]int   `json:"counts"` // instances by state, and vacant slots
	Status     *store.Status    `json:"status,omitempty"`
}

// Blocked is work that cannot be done yet.
type Blocked struct {
	What      string    `json:"what"`
	Rule      string    `json:"rule"`
	Why       string    `json:"why"`
	Until     string    `json:"until,omitempty"`   // what would free it
	Opens     time.Time `json:"opens,omitzero"`    // when it may begin, if that is known
	Command   string    `json:"command,omitempty"` // or what an operator may do
	Instances []string  `json:"instances,omitempty"`
}

// Instance is an instance in a list.
type Instance struct {
	ID       string    `json:"id"`
	Group    string    `json:"group"`
	Slot     int       `json:"slot"` // -1: on demand
	Is       string    `json:"is"`
	Phase    string    `json:"phase"`
	Why      string    `json:"why,omitempty"`
	Rule     string    `json:"rule,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Address  string    `json:"address,omitempty"`
	Template string    `json:"template"`
	Agent    string    `json:"agent"`
	Replaces string    `json:"replaces,omitempty"`
	Since    time.Time `json:"since"`
	Created  time.Time `json:"created"`
}

// Story is an instance and its history, also of one that is gone.
type Story struct {
	ID        string          `json:"id"`
	Group     string          `json:"group"`
	Stale     bool            `json:"stale"`
	Revision  store.Revision  `json:"revision"`
	Base      store.Revision  `json:"record_revision,omitempty"` // the ETag; 0: it has no record
	Answer    string          `json:"answer"`
	Prevented string          `json:"would_have_been_prevented,omitempty"`
	Heir      string          `json:"replaced_by,omitempty"`
	Now       *Instance       `json:"now,omitempty"` // nil: it has no record
	Lines     []string        `json:"lines,omitempty"`
	Blocked   []Blocked       `json:"blocked"`
	Upcoming  *story.Upcoming `json:"next_look,omitempty"` // what is decided next
	Record    *store.Instance `json:"record,omitempty"`
	Report    *store.Report   `json:"report,omitempty"`
	Load      []view.Load     `json:"load"`   // the last hour, as this replica saw it
	Events    []Event         `json:"events"` // the oldest first
}

// Event is an entry of the journal.
type Event struct {
	Name string `json:"name"` // sorts in the order of time
	store.JournalEntry
}

// Events are entries of the journal.
type Events struct {
	Entries []Event   `json:"entries"` // the newest first
	Older   string    `json:"older,omitempty"`
	Since   time.Time `json:"since,omitzero"` // older entries are not in memory
}

// Hold is why a shard is put on hold.
type Hold struct {
	Why string `json:"why"`
}

// Freeze is a time in which no planned work begins.
type Freeze struct {
	Why   string    `json:"why"`
	From  time.Time `json:"from,omitzero"` // zero: now
	Until time.Time `json:"until"`
}

// Protection is how an instance is protected: from scale-down, age limits and rolls.
type Protection struct {
	FromHeal bool      `json:"from_heal,omitempty"` // it is left alone even if it fails
	Why      string    `json:"why,omitempty"`
	Until    time.Time `json:"until,omitzero"` // zero: until an operator ends it
}

// Drill is a failure to be caused on purpose.
type Drill struct {
	Kind     string `json:"kind"`               // one of DrillKinds
	Instance string `json:"instance,omitempty"` // "": the oldest running one; a zone has none
	Zone     string `json:"zone,omitempty"`     // whose machines end, with the kind zone
}

// Adoption is where a machine without a record belongs.
type Adoption struct {
	Group string `json:"group,omitempty"` // "": the group in its tag
	Slot  *int   `json:"slot,omitempty"`  // nil: its former slot, else a free one
}

// etag is the revision of what an edit of the document changes; 0: it cannot be edited.
func (d Shard) etag() store.Revision { return d.Base }

func (d Story) etag() store.Revision { return d.Base }

// Result is the outcome of an edit or an order.
type Result struct {
	Revision store.Revision `json:"revision,omitempty"` // of the group after it
	Changed  bool           `json:"changed"`
	Order    string         `json:"order,omitempty"`    // its ID
	Repeated bool           `json:"repeated,omitempty"` // the order was given before, with the same Idempotency-Key
	Said     []string       `json:"said,omitempty"`     // warnings, and what follows
	// Plan is what would follow, for a dry run: the document of group apply --dry-run -o json.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// Problem is why a request was not carried out, as RFC 9457 has it.
type Problem struct {
	Status   int            `json:"status"`
	Title    string         `json:"title"`
	Detail   string         `json:"detail"`
	Remedies story.Remedies `json:"remedies,omitempty"`
	Errors   []string       `json:"errors,omitempty"`
}

func (p *Problem) Error() string { return p.Detail }

func rowOf(g story.Known, r view.GroupRow) Row {
	row := Row{
		Name: r.Name, Revision: g.Revision(), Static: g.IsStatic(), State: r.State, Run: r.Run, Now: r.Now,
		Attends: r.Mark == "!", Since: r.Since,
	}
	if r.Health >= 0 {
		row.Health = &r.Health
	}
	return row
}

func shardOf(v *view.Shard) Shard {
	d := Shard{
		Truth: v.Truth, Revision: v.State.Revision, Base: v.State.Shard.Modified, Hold: v.Hold,
		Freeze: v.State.Shard.Record.Freeze, Problems: v.Problems, Groups: []Row{},
	}
	for i, row := range v.Rows {
		d.Groups = append(d.Groups, rowOf(v.State.Groups[i], row))
	}
	return d
}

func groupOf(v *view.Group) Group {
	d := Group{
		Row: rowOf(v.Known, v.Row), Stale: v.Truth.Stale, StateAt: v.Revision, Problems: v.Problems, Upcoming: v.Upcoming,
		InProgress: v.Lines, Blocked: blockedOf(v.Blocked), Waits: blockedOf(v.Turns), Planned: v.Planned, Roll: v.Roll,
		Scale: v.Scale, Trend: append([]view.Moment{}, v.Trend...), Protected: append([]view.Protected{}, v.Protects...),
		Busy: append([]view.Busy{}, v.Busy...), Counts: view.Counts(v.Cells),
	}
	if v.Known.Status.Present() {
		d.Status = &v.Known.Status.Record
	}
	return d
}

func blockedOf(all []story.Blockage) []Blocked {
	list := []Blocked{}
	for _, b := range all {
		list = append(list, Blocked{
			What: b.What(), Rule: b.Rule, Why: b.Why(), Until: b.Until(), Opens: b.Of.Opens, Command: reason.Command(&b.Blocked),
			Instances: b.Instances,
		})
	}
	return list
}

func instanceOf(u *view.Unit) Instance {
	return Instance{
		ID: u.ID, Group: u.Group, Slot: u.Slot, Is: u.Kind, Phase: u.Phase, Why: u.Why, Rule: u.Rule, Zone: u.Zone,
		Address: u.Address, Template: u.Template, Agent: u.Agent, Replaces: u.Replaces, Since: u.Since, Created: u.Created,
	}
}

func storyOf(v *view.Instance) Story {
	d := Story{
		ID: v.ID, Group: v.Group, Stale: v.Truth.Stale, Revision: v.Revision, Answer: v.Answer(), Prevented: v.Prevented,
		Heir: v.Heir(), Lines: v.Lines, Blocked: blockedOf(v.Blocked), Upcoming: v.Upcoming, Events: []Event{},
		Load: append([]view.Load{}, v.Load...),
	}
	if v.There {
		now := instanceOf(&v.Unit)
		d.Now, d.Record, d.Base = &now, &v.Record, v.Modified
		if v.Report.Present() {
			d.Report = &v.Report.Record
		}
	}
	for _, e := range v.Events {
		d.Events = append(d.Events, Event{e.Name, e.JournalEntry})
	}
	return d
}
