package foresee

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// Course is what happens until a group is stable.
type Course struct {
	Create   int `json:"create"`   // instances for empty slots
	Remove   int `json:"remove"`   // instances that are no longer wanted
	Recreate int `json:"recreate"` // instances replaced because they are outdated
	Restart  int `json:"restart"`  // restarted for that reason
	Update   int `json:"update"`   // updated live for that reason
	Heal     int `json:"heal"`     // replaced or restarted for any other reason
	// Drain is how many of the removed instances drain first: those that have a hook.
	Drain int `json:"drain,omitempty"`
	// AtOnce is how many of the outdated instances change at the same time.
	AtOnce int `json:"at_once"`
	// Healthy is the smallest number of healthy instances on the way, and Before the number at the
	// start.
	Healthy int `json:"healthy_at_least"`
	Before  int `json:"healthy_before"`
	// Outdated is how many instances stay outdated.
	Outdated int `json:"outdated,omitempty"`

	Took time.Duration `json:"-"`
	// AtLeast is how long the creations take at the shard's create_rate; 0 if that delays none.
	// Took is at least this long.
	AtLeast time.Duration `json:"-"`
	Rests   bool          `json:"rests"` // until the group comes to rest
	// Estimated says that the course was too long to be followed to its end: counts are of what is
	// left to do, and the time is computed. Seen is for how many instances it was followed.
	Estimated bool            `json:"estimated,omitempty"`
	Seen      int             `json:"seen,omitempty"`
	Held      []store.Blocked `json:"held,omitempty"` // why it does not proceed: what is due but not allowed
	// Waits is what planned work waits for on the way, as configured: canaries, bake, windows and
	// freezes.
	Waits []store.Blocked `json:"waits,omitempty"`
}

// Idle reports whether nothing happens.
func (c Course) Idle() bool {
	return c.Create+c.Remove+c.Recreate+c.Restart+c.Update+c.Heal == 0
}

// Words describes the course.
func (c Course) Words() string {
	var parts []string
	add := func(n int, form string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(form, n))
		}
	}
	add(c.Heal, "heal %d")
	add(c.Remove, "remove %d")
	add(c.Create, "create %d")
	rolled := len(parts)
	add(c.Recreate, "recreate %d")
	add(c.Restart, "restart %d")
	add(c.Update, "update %d live")
	if len(parts) == 0 {
		return "nothing to do"
	}
	if len(parts) > rolled && c.Recreate+c.Restart+c.Update > 1 {
		parts[len(parts)-1] += " " + number(c.AtOnce) + " at a time"
	}
	words := strings.Join(parts, ", ")
	if c.Before > 0 {
		words += fmt.Sprintf("; never below %d healthy", c.Healthy)
	}
	return words
}

func number(n int) string {
	if words := []string{
		"none", "one", "two", "three", "four", "five", "six", "seven", "eight",
		"nine",
	}; n < len(words) {
		return words[n]
	}
	return fmt.Sprint(n)
}

// recorder records a course.
type recorder struct {
	w      *World
	course Course
	leaves map[string]store.CauseKind // why an instance is removed
	rolls  map[string]bool            // instances that are changed because they, or those that they replace, were outdated
	fresh  map[string]bool            // instances for empty slots that are not healthy yet
	begun  time.Time
	moved  time.Time // when an instance last changed

	outdated int // instances at the start
}

func newRecorder(w *World) *recorder {
	return &recorder{
		w: w, leaves: map[string]store.CauseKind{}, rolls: map[string]bool{}, fresh: map[string]bool{},
		begun: w.now, moved: w.now,
	}
}

// note records an action that is about to be carried out.
func (r *recorder) note(a plan.Action) {
	if a.Group != r.w.group || a.Instance == "" {
		return
	}
	r.moved = r.w.now
	made := r.madeBy(a)
	for _, m := range made {
		r.arrives(a, m)
	}
	_, goes := r.leaves[a.Instance]
	if a.To == store.Draining && a.From != a.To {
		r.course.Drain++
	}
	switch {
	case a.To == store.Stopping && a.Cause.Kind == store.CauseOutdated:
		r.course.Restart++
		r.rolls[a.Instance] = true
	case a.To == store.Stopping:
		r.course.Heal++
	case a.Cause.Kind == store.CauseOutdated && a.Replacement == "" && len(made) == 0 && a.From == a.To:
		r.course.Update++
		r.rolls[a.Instance] = true
	case (a.To == store.Draining || a.To == store.Deleting) && !goes:
		r.leaves[a.Instance] = a.Cause.Kind
		delete(r.rolls, a.Instance)
		switch a.Cause.Kind {
		case store.CauseSmaller, store.CauseGroupEnds:
			r.course.Remove++
		default:
			if a.Cause.Kind == store.CauseOutdated && a.To == store.Draining && !r.replaced(a.Instance) {
				r.rolls[a.Instance] = true // its slot is empty until a new instance fills it
			}
		}
	}
}

// arrives records an instance that is created.
func (r *recorder) arrives(a plan.Action, made store.Instance) {
	was := made.Replaces
	switch {
	case was == "":
		r.course.Create++
		r.fresh[made.ID] = true
	case a.Cause.Kind == store.CauseOutdated || r.leaves[was] == store.CauseOutdated:
		r.course.Recreate++
		r.rolls[made.ID] = true
		delete(r.rolls, was)
	default:
		r.course.Heal++
	}
}

// waits records what planned work waits for while time passes, once for each kind of obstacle and
// work.
func (r *recorder) waits(held []store.Blocked) {
	for _, b := range held {
		switch b.Kind {
		case store.BlockedByCanary:
			if b.Of.Count < b.Of.Limit {
				continue // they come up: only then the roll waits
			}
		case store.BlockedByBake, store.BlockedByWindow, store.BlockedByFreeze:
		default:
			continue
		}
		if !slices.ContainsFunc(r.course.Waits, func(o store.Blocked) bool { return o.Kind == b.Kind && o.Work == b.Work }) {
			b.Instance = ""
			r.course.Waits = append(r.course.Waits, b)
		}
	}
}

// madeBy returns the records that an action creates.
func (r *recorder) madeBy(a plan.Action) (made []store.Instance) {
	for _, write := range a.Writes {
		kind, _, _ := r.w.keys.Split(write.Key)
		if _, there := r.w.kvs[write.Key]; kind != store.KindInstances || there || write.Delete {
			continue
		}
		if v, err := store.Decode[store.Instance](store.KV{Key: write.Key, Value: write.Value}); err == nil &&
			v.Record.Managed {
			made = append(made, v.Record)
		}
	}
	return made
}

// replaced reports whether an instance has a replacement already.
func (r *recorder) replaced(id string) bool {
	for _, other := range r.w.content.ByGroup[r.w.group] {
		if r.w.content.Instances[other].Record.Replaces == id {
			return true
		}
	}
	return false
}

// begin counts the instances before anything happens.
func (r *recorder) begin(p plan.Plan) {
	r.course.Before = r.healthy(p)
	r.course.Healthy = r.course.Before
}

// look counts the instances once a plan is carried out.
func (r *recorder) look(p plan.Plan) {
	r.course.Healthy = min(r.course.Healthy, r.healthy(p))
	r.outdated = max(r.outdated, r.w.content.Status[r.w.group].Record.Outdated)
	r.course.AtOnce = max(r.course.AtOnce, len(r.rolls))
}

// healthy counts the healthy instances, and ends the changes of those.
func (r *recorder) healthy(p plan.Plan) int {
	healthy := 0
	for _, id := range r.w.content.ByGroup[r.w.group] {
		rec := r.w.content.Instances[id].Record
		verdict := p.Judgments.Of(id).Verdict
		if !rec.Managed {
			continue // on demand: not part of the size
		}
		well := rec.Phase == store.Running && (verdict == store.Live || verdict == store.Doomed || verdict == "")
		if well || rec.Phase == store.Finished {
			healthy++
		}
		if well {
			delete(r.fresh, id)
		}
		if well && r.rolls[id] && (rec.Config == "" || r.w.content.Reports[id].Record.Config == rec.Config) {
			delete(r.rolls, id)
		}
	}
	return healthy
}

// end returns the course when it is followed no further.
func (r *recorder) end() Course {
	c := r.course
	c.Took, c.Outdated = r.moved.Sub(r.begun), r.w.content.Status[r.w.group].Record.Outdated
	return r.bounded(c)
}

// stuck returns the course when it goes no further, and why.
func (r *recorder) stuck(held []store.Blocked) Course {
	c := r.end()
	c.Held = held
	c.Waits = slices.DeleteFunc(c.Waits, func(b store.Blocked) bool {
		return slices.ContainsFunc(held, func(h store.Blocked) bool { return h.Kind == b.Kind && h.Work == b.Work })
	})
	return c
}

// bounded adds the wait for the create rate, which is not simulated.
func (r *recorder) bounded(c Course) Course {
	settings := r.w.settings
	if waiting := c.Create + c.Recreate + c.Heal - settings.CreateBurst; waiting > 0 && settings.CreateRate > 0 {
		c.AtLeast = time.Duration(float64(waiting) / settings.CreateRate * float64(time.Second))
		c.Took = max(c.Took, c.AtLeast+r.w.pace)
	}
	return c
}

// cut returns the course when it is too long to be followed to the end. What is left is counted,
// and assumed to proceed like the part that was followed.
func (r *recorder) cut() Course {
	c := r.end()
	c.Estimated, c.Rests = true, true
	grown, took := c.Create-len(r.fresh), c.Took
	wanted, there := r.sizes()
	c.Create += max(0, wanted-there)
	c.Remove += max(0, there-wanted)
	c.Healthy = min(c.Healthy, max(0, wanted))
	if c.Create > 0 && grown > 0 {
		c.Took = took * time.Duration(c.Create) / time.Duration(grown)
		c.Seen = grown
	}
	if all := r.outdated; all > 0 && r.proactive() {
		done := r.scale(&c, all)
		// only the duration of a start is known
		roll := r.w.pace * time.Duration((all+max(1, c.AtOnce)-1)/max(1, c.AtOnce))
		if done > 0 {
			roll = took * time.Duration(all) / time.Duration(done)
		}
		c.Took, c.Seen, c.Outdated = max(c.Took, roll), max(c.Seen, done), 0
	}
	return r.bounded(c)
}

// scale extends the course to all outdated instances, in the proportions of its first part. It
// returns how many are brought up to date.
func (r *recorder) scale(c *Course, all int) (done int) {
	begun := c.Recreate + c.Restart + c.Update
	if begun > 0 {
		all = max(all, begun)
		c.Recreate, c.Restart, c.Update = c.Recreate*all/begun, c.Restart*all/begun, c.Update*all/begun
		return begun - len(r.rolls)
	}
	spec, _ := r.w.Spec()
	c.AtOnce = 1
	for _, id := range r.w.content.ByGroup[r.w.group] {
		switch action, _ := plan.Update(r.w.content.Instances[id].Record, spec); action {
		case store.ActionRecreate:
			c.Recreate++
		case store.ActionRestart:
			c.Restart++
		case store.ActionLiveUpdate:
			c.Update++
		}
	}
	if c.Restart > 0 || c.Recreate > 0 && spec.MaxExpansion() == 0 {
		c.Healthy = min(c.Healthy, max(0, c.Before-c.AtOnce))
	}
	return 0
}

func (r *recorder) proactive() bool {
	spec, there := r.w.Spec()
	return there && spec.Rollout.Strategy == store.StrategyProactive
}

// sizes returns how many instances are wanted, and how many exist and stay.
func (r *recorder) sizes() (wanted, there int) {
	if spec, known := r.w.Spec(); known && !spec.Deleting && !spec.Stopped && !spec.Unstarted {
		wanted = spec.Size
	}
	filled := map[int]bool{}
	for _, id := range r.w.content.ByGroup[r.w.group] {
		if rec := r.w.content.Instances[id].Record; rec.Managed && rec.Phase.Fills() {
			filled[rec.Slot] = true
		}
	}
	return wanted, len(filled)
}
