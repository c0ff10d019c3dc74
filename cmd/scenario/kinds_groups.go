package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/sim"
	"github.com/leasehold/leasehold/store"
)

// applies is the kind of event that applies a group file.
const applies = "apply"

func nothingToRead(string) ([]store.Group, error) { return nil, nil }

// groupKinds are what operators do to whole groups, and bad templates.
func groupKinds() []Kind {
	return []Kind{
		{applies, "file", "A group file is applied. Its path is relative to the scenario.", readApply},
		{
			"bad_template", "group",
			"Instances with the group's present template fail their checks, existing ones included.", readBad,
		},
		{"roll", "group", "The group's template changes.", readRoll},
		{"scale", "", "The group's size changes.", readScale},
		{
			"pause", "group", "The group is paused.",
			readEdit("is paused", "resumed", func(o *store.OperatorState) { o.Paused = true },
				func(o *store.OperatorState) { o.Paused = false }),
		},
		{
			"resume", "group", "A pause ends.",
			readEdit("is resumed", "", func(o *store.OperatorState) { o.Paused = false }, nil),
		},
		{
			"stop", "group", "The group is stopped.",
			readEdit("is stopped", "started", func(o *store.OperatorState) { o.Stopped = true },
				func(o *store.OperatorState) { o.Stopped = false }),
		},
		{
			"start", "group", "The group is started.",
			readEdit("is started", "", func(o *store.OperatorState) { o.Stopped, o.Unstarted = false, false }, nil),
		},
		{"restart_group", "group", "All instances are restarted.", readRelaunch},
		{"rollback", "group", "The group is rolled back to the last good template.", readRollback},
		{
			"delete_group", "group", "The group is deleted.",
			readEdit("is deleted", "", func(o *store.OperatorState) { o.Deleting = true }, nil),
		},
	}
}

func readApply(f *fields) (text, time.Duration, func(*stage) string) {
	const allowed = "the path of a group file"
	file := f.text("file", allowed, "The file.")
	bad := f.flag("bad", "Whether instances of these groups fail their checks.")
	if file == "" {
		if !f.has("file") {
			f.missing("file", allowed)
		}
		return text{}, 0, nil
	}
	groups, err := f.setting.File(file)
	if err != nil {
		f.refusedFile(file, err)
		return text{}, 0, nil
	}
	what := file + " is applied"
	if bad {
		what += ", and is bad"
	}
	return says(what), 0, func(st *stage) string {
		var names []string
		for _, g := range groups {
			if before, there := st.w.Group(g.Name); there {
				g.OperatorState = before.OperatorState
			}
			if bad {
				st.w.SpoilTemplate(g.InstanceSpec().TemplateHash(), sim.NeverHealthy)
			}
			st.w.Apply(g)
			names = append(names, g.Name)
		}
		return strings.Join(names, ", ")
	}
}

func readBad(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	mute := f.flag("silent", "Whether their agents do not even register.")
	d := f.lasting("Then they are healthy like others.")
	flaw := sim.NeverHealthy
	if mute {
		flaw = sim.NeverRegisters
	}
	return says("the present template of " + group + " is bad"), d, func(st *stage) string {
		g, there := st.w.Group(group)
		if !there {
			return "there is no such group"
		}
		hash := g.InstanceSpec().TemplateHash()
		st.w.SpoilTemplate(hash, flaw)
		st.later(d, func() { st.w.MendTemplate(hash) })
		return hash
	}
}

// The kinds of change of a template.
const (
	rollMachine  = "recreate"
	rollWorkload = "restart"
	rollVars     = "live_update"
)

func readRoll(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField(anyGroup)
	action := f.choice("action", rollMachine, "The least action that the change needs (ROLL-2).", rollMachine,
		rollWorkload, rollVars)
	bad := f.flag("bad", "Whether instances with the new template fail their checks.")
	what := "the template of " + group + " changes"
	if group == "" {
		what = "the templates of all groups change"
	}
	if bad {
		what += " to a bad one"
	}
	return says(what), 0, func(st *stage) string {
		st.rolls++
		mark := fmt.Sprintf("v%d", st.rolls+1)
		for _, name := range st.groupsMeant(group) {
			st.w.Edit(name, func(g *store.Group) {
				switch action {
				case rollMachine:
					g.Template.Settings = with[any](g.Template.Settings, "simulated", mark)
				case rollWorkload:
					g.Workload.Run = append(append([]string(nil), g.Workload.Run...), mark)
				default:
					g.Vars = with(g.Vars, "simulated", mark)
				}
				if bad {
					st.w.SpoilTemplate(g.InstanceSpec().TemplateHash(), sim.NeverHealthy)
				}
			})
		}
		return ""
	}
}

func with[V any](m map[string]V, key string, value V) map[string]V {
	out := map[string]V{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func readScale(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	size := f.number("size", 0, 0, store.MaxSize, "The new size.")
	if !f.has("size") {
		f.missing("size", fmt.Sprintf("a whole number, 0 to %d", store.MaxSize))
	}
	return says(fmt.Sprintf("%s is scaled to %d", group, size)), 0, func(st *stage) string {
		return st.edit(group, func(g *store.Group) { g.Size = size })
	}
}

// readEdit reads an edit of a group, and undo after a while.
func readEdit(what, back string, do, undo func(*store.OperatorState)) reader {
	return func(f *fields) (text, time.Duration, func(*stage) string) {
		group := f.groupField("")
		var d time.Duration
		if undo != nil {
			d = f.lasting("Then it is " + back + ".")
		}
		return says(group + " " + what), d, func(st *stage) string {
			st.later(d, func() {
				st.edit(group, func(g *store.Group) { undo(&g.OperatorState) })
			})
			return st.edit(group, func(g *store.Group) { do(&g.OperatorState) })
		}
	}
}

func readRelaunch(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	action := store.ActionRestart
	if f.flag("recreate", "On new machines instead of in place.") {
		action = store.ActionRecreate
	}
	return says("all instances of " + group + " are relaunched"), 0, func(st *stage) string {
		return st.edit(group, func(g *store.Group) {
			g.Relaunch = store.Relaunch{Number: g.Relaunch.Number + 1, Action: action}
		})
	}
}

func readRollback(f *fields) (text, time.Duration, func(*stage) string) {
	group := f.groupField("")
	return says(group + " is rolled back"), 0, func(st *stage) string {
		good := sim.Read[store.Status](st.w, st.w.Keys().Status(group)).Record.LastGood
		if good == nil {
			return "there is no template to go back to"
		}
		return st.edit(group, func(g *store.Group) { g.Restore(good.Spec) })
	}
}

// edit changes a group, and reports if it does not exist.
func (st *stage) edit(name string, change func(*store.Group)) string {
	if !st.w.Edit(name, change) {
		return "there is no such group"
	}
	return ""
}
