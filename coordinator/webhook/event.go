package webhook

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// Event is a journal entry in the form that receivers get. It has only typed fields: output of
// workloads, checks and providers stays in the shard, and so do the variables of groups.
type Event struct {
	Schema   int             `json:"schema"`
	ID       string          `json:"id"`
	At       time.Time       `json:"at"`
	Shard    string          `json:"shard"`
	Severity reason.Severity `json:"severity"`
	Rule     string          `json:"rule"`
	Headline string          `json:"headline"`
	Group    string          `json:"group,omitempty"`
	Instance string          `json:"instance,omitempty"`
	Slot     *int            `json:"slot,omitempty"`
	// From and To are the phases between which the instance changed.
	From           store.Phase          `json:"from,omitempty"`
	To             store.Phase          `json:"to,omitempty"`
	Verdict        store.Verdict        `json:"verdict,omitempty"`
	Cause          store.CauseKind      `json:"cause,omitempty"`
	Replacement    string               `json:"replacement,omitempty"`
	Counterfactual store.Counterfactual `json:"counterfactual,omitempty"`
	Revision       store.Revision       `json:"revision"` // of the journal entry
	// Missed is the number of events before this one that were given up.
	Missed int `json:"missed,omitempty"`
}

// Shard is the shard whose decisions are sent.
type Shard struct{ Name, ID string }

// newEvent returns the event of a journal entry. Its ID is the same for every sender and every
// attempt.
func newEvent(shard Shard, kv store.KV, e *store.JournalEntry) Event {
	_, name, _ := strings.Cut(kv.Key[strings.LastIndex(kv.Key, "/")+1:], "-") // follows the time
	return Event{
		Schema: 1, ID: fmt.Sprintf("%s-%d-%s", shard.ID, kv.Created, name),
		At: e.At, Shard: shard.Name, Severity: reason.SeverityOf(e), Rule: e.Rule, Headline: reason.Headline(e),
		Group: e.Group, Instance: e.Instance, Slot: e.Slot, From: e.From, To: e.To, Verdict: e.Verdict, Cause: e.Cause.Kind,
		Replacement: e.Replacement, Counterfactual: e.Counterfactual, Revision: kv.Created,
	}
}
