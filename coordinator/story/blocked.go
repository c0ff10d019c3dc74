package story

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Blockage is one kind of blocked work, of one or several instances.
type Blockage struct {
	store.Blocked
	Instances []string
}

// Merge combines work that is blocked for the same reason, in the order of the first occurrence.
func Merge(blocked []store.Blocked) []Blockage {
	var all []Blockage
	same := map[store.Blocked]int{}
	for _, b := range blocked {
		key := reason.Cause(b)
		i, known := same[key]
		if !known {
			i = len(all)
			same[key] = i
			all = append(all, Blockage{Blocked: b})
		}
		if b.Instance != "" && !slices.Contains(all[i].Instances, b.Instance) {
			all[i].Instances = append(all[i].Instances, b.Instance)
		}
	}
	return all
}

// MaxNamed is the number of instances that are named where several are concerned.
const MaxNamed = 6

// What describes the work, for all the instances for which it is blocked.
func (b Blockage) What() string {
	named := strings.Join(b.Instances[:min(len(b.Instances), MaxNamed)], ", ")
	if more := len(b.Instances) - MaxNamed; more > 0 {
		named += ", and " + reason.Counted(more, "more", "more")
	}
	return reason.What(b.of(named))
}

// Why and until apply to all the instances: INSTANCE stands for the name of each.
func (b Blockage) Why() string { return reason.Why(b.of("INSTANCE")) }

func (b Blockage) Until() string { return reason.Until(b.of("INSTANCE")) }

// Frees is the command that unblocks the work; "" if there is none. Next to it, what it ends like
// the command needs no repetition.
func (b Blockage) Frees() string { return reason.Command(b.of("INSTANCE")) }

// of returns the blocked work of one instance. Work that several instances share names INSTANCE.
func (b Blockage) of(name string) *store.Blocked {
	if len(b.Instances) > 1 {
		b.Instance = name
	}
	return &b.Blocked
}

// Sentence describes the blocked work in one line.
func (b Blockage) Sentence() string {
	text := b.What() + ": " + b.Why()
	if b.Until() != "" {
		text += "; until " + b.Until()
	}
	return text + " (" + b.Rule + ")"
}

// Unblocking returns the commands that would unblock the work.
func Unblocking(blocked []store.Blocked) Remedies {
	var commands Remedies
	for i := range blocked {
		command := Remedy{Command, reason.Command(&blocked[i])}
		if command.Text != "" && !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	return commands
}
