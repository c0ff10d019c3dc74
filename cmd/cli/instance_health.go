package cli

import (
	"context"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// lastReport is the part of an instance's last report that a list shows. Decoding no more keeps a
// list of many instances cheap.
type lastReport struct {
	BootID  string `json:"boot_id"`
	Healthy bool   `json:"healthy"`
	Why     string `json:"why"`
}

// instanceHealth is an instance's health, from its session and its last report.
type instanceHealth struct {
	word string // a cell of a table: healthy, or in capitals what is wrong; "-" if unknown
	rule string // the failing check
	why  string
}

// unhealthy is the word for an instance whose own report says so.
const unhealthy = "UNHEALTHY"

func (h instanceHealth) ill() bool { return h.rule != "" }

// healthOfInstance judges an instance that should be running. One that is starting shows its phase,
// and its checks need not pass yet.
func healthOfInstance(i store.Instance, a *store.Alive, r *lastReport) instanceHealth {
	current := r != nil && a != nil && r.BootID == a.BootID // otherwise the report is of an earlier boot
	switch {
	case i.Phase != store.Running && i.Phase != store.Draining:
		return instanceHealth{word: "-"}
	case a == nil:
		return instanceHealth{word: "SILENT", rule: "DET-7", why: "its agent has no session"}
	case current && !r.Healthy:
		return instanceHealth{word: unhealthy, rule: "DET-9", why: output.OneLine(r.Why)}
	case a.State.Troubled():
		return instanceHealth{
			word: "SUSPECT", rule: "DET-6",
			why: strings.TrimSpace("its stream is " + string(a.State) + ": " + output.OneLine(a.Why)),
		}
	case !current:
		return instanceHealth{word: "-"}
	default:
		return instanceHealth{word: "healthy"}
	}
}

// reportsOf reads the listed part of the reports of the instances from one name to another, by
// instance.
func (s *Session) reportsOf(ctx context.Context, keys store.Keys, first, last string, most int,
	at store.Revision,
) (map[string]*lastReport, error) {
	byID := map[string]*lastReport{}
	err := s.parts(ctx, keys.Of(store.KindReports), keys.Report(first), most, at, func(part store.Part) bool {
		for _, kv := range part.KVs {
			if kv.Key > keys.Report(last) {
				return false
			}
			// an unreadable report hides no instance
			if v, err := store.Decode[lastReport](kv); err == nil {
				_, id, _ := keys.Split(kv.Key)
				byID[id] = &v.Record
			}
		}
		return true
	})
	return byID, err
}
