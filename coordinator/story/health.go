package story

import (
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// LastReport is the part of an instance's last report that a list shows. Decoding only
// this keeps a list of many instances cheap.
type LastReport struct {
	BootID  string `json:"boot_id"`
	Healthy bool   `json:"healthy"`
	Why     string `json:"why"`
}

// Health is an instance's health, from its session and its last report.
type Health struct {
	Word string // a cell of a table: healthy, or in capitals what is wrong; "-" if unknown
	Rule string // the failing check
	Why  string
}

// Unhealthy is the word for an instance whose own report says so.
const Unhealthy = "UNHEALTHY"

// Ill reports whether something is wrong.
func (h Health) Ill() bool { return h.Rule != "" }

// HealthOf judges an instance that should be running. An instance that is starting shows its phase,
// and its checks need not pass yet.
func HealthOf(i store.Instance, a *store.Alive, r *LastReport) Health {
	current := r != nil && a != nil && r.BootID == a.BootID // otherwise the report is of an earlier boot
	switch {
	case i.Phase != store.Running && i.Phase != store.Draining:
		return Health{Word: "-"}
	case a == nil:
		return Health{Word: "SILENT", Rule: "DET-7", Why: "its agent has no session"}
	case current && !r.Healthy:
		return Health{Word: Unhealthy, Rule: "DET-9", Why: reason.OneLine(r.Why)}
	case a.State.Troubled():
		return Health{
			Word: "SUSPECT", Rule: "DET-6",
			Why: strings.TrimSpace("its stream is " + string(a.State) + ": " + reason.OneLine(a.Why)),
		}
	case !current:
		return Health{Word: "-"}
	default:
		return Health{Word: "healthy"}
	}
}

// Ailing reports whether an instance with this verdict is not well.
func Ailing(v store.Verdict) bool { return v == store.Suspect || v.Failed() }

// Stands reports whether the leader's last journaled verdict on an instance still holds although
// the records do not show it: the leader knows more, such as the provider's answers. It holds while
// the group's status counts it and none of the records that could take it back is newer.
func Stands(entry *store.JournalEntry, status *store.Status, instance, alive, report store.Revision) bool {
	newest := max(instance, alive)
	if entry.Verdict != store.Suspect {
		newest = max(newest, report)
	}
	return Ailing(entry.Verdict) && status.Verdicts[entry.Verdict] > 0 && newest <= entry.Revision
}
