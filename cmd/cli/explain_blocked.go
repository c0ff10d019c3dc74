package cli

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// blockedWork is one kind of blocked work, of one or several instances.
type blockedWork struct {
	store.Blocked
	Instances []string
}

// merge combines work that is blocked for the same reason, in the order of the first occurrence.
func merge(blocked []store.Blocked) []blockedWork {
	var all []blockedWork
	same := map[store.Blocked]int{}
	for _, b := range blocked {
		key := reason.Cause(b)
		i, known := same[key]
		if !known {
			i = len(all)
			same[key] = i
			all = append(all, blockedWork{Blocked: b})
		}
		if b.Instance != "" && !slices.Contains(all[i].Instances, b.Instance) {
			all[i].Instances = append(all[i].Instances, b.Instance)
		}
	}
	return all
}

// mostNamed is how many of several instances are named.
const mostNamed = 6

// what describes the work, for all the instances for which it is blocked.
func (b blockedWork) what() string {
	named := strings.Join(b.Instances[:min(len(b.Instances), mostNamed)], ", ")
	if more := len(b.Instances) - mostNamed; more > 0 {
		named += ", and " + counted(more, "more", "more")
	}
	return reason.What(b.of(named))
}

// why and until apply to all the instances: INSTANCE stands for the name of each.
func (b blockedWork) why() string { return reason.Why(b.of("INSTANCE")) }

func (b blockedWork) until() string { return reason.Until(b.of("INSTANCE")) }

// of returns the blocked work of one instance. Work that several instances share names INSTANCE.
func (b blockedWork) of(name string) *store.Blocked {
	if len(b.Instances) > 1 {
		b.Instance = name
	}
	return &b.Blocked
}

// sentence describes the blocked work in one line.
func (b blockedWork) sentence() string {
	text := b.what() + ": " + b.why()
	if b.until() != "" {
		text += "; until " + b.until()
	}
	return text + " (" + b.Rule + ")"
}
