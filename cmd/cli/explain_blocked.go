package cli

import (
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// blockedWork is the same held work of one or several instances.
type blockedWork struct {
	store.Blocked
	Instances []string
}

// merge puts together what is held for the same reason, in the order in which it is first met.
func merge(blocked []store.Blocked) []blockedWork {
	var all []blockedWork
	same := map[store.Blocked]int{}
	for _, b := range blocked {
		key := b
		if b.Instance != "" {
			key.Instance = ""
			key.What = strings.ReplaceAll(b.What, b.Instance, "*")
			key.Until = strings.ReplaceAll(b.Until, b.Instance, "*")
			key.Why = strings.ReplaceAll(b.Why, b.Instance, "*")
		}
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

// mostNamed is how many instances are named where many are meant.
const mostNamed = 6

// what is the work, for all the instances that it is held for.
func (b blockedWork) what() string {
	if len(b.Instances) < 2 {
		return b.What
	}
	named := strings.Join(b.Instances[:min(len(b.Instances), mostNamed)], ", ")
	if more := len(b.Instances) - mostNamed; more > 0 {
		named += ", and " + counted(more, "more", "more")
	}
	return strings.ReplaceAll(b.What, b.Instances[0], named)
}

// why and until are those of all the instances: where each is named, INSTANCE stands for it.
func (b blockedWork) why() string { return b.ofAll(b.Why) }

func (b blockedWork) until() string { return b.ofAll(b.Until) }

func (b blockedWork) ofAll(text string) string {
	if len(b.Instances) < 2 {
		return text
	}
	return strings.ReplaceAll(text, b.Instances[0], "INSTANCE")
}

// sentence is the held work in one line.
func (b blockedWork) sentence() string {
	text := b.what() + ": " + b.why()
	if b.Until != "" {
		text += "; until " + b.until()
	}
	return text + " (" + b.Rule + ")"
}
