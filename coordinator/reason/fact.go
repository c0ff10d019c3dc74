package reason

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// Evidence returns the evidence of a journal entry, a line for each fact.
func Evidence(e *store.JournalEntry) []string {
	if len(e.Facts) == 0 {
		return e.Evidence // of a release without facts
	}
	return Lines(e.Facts)
}

// Lines renders facts, a line for each.
func Lines(facts []store.Fact) []string {
	if len(facts) == 0 {
		return nil
	}
	lines := make([]string, len(facts))
	for i := range facts {
		lines[i] = Line(&facts[i])
	}
	return lines
}

// Line renders a fact as a line of evidence.
func Line(f *store.Fact) string {
	switch f.Kind {
	case store.FactStream:
		return fmt.Sprintf("stream %s since rev %d, epoch %d at %s", f.Name, f.Rev, f.Count, f.By)
	case store.FactNoSession:
		return also("alive absent", ", last state ", f.Name)
	case store.FactNoList:
		return "provider: no list yet"
	case store.FactByHand:
		return "no provider lists it: its machine was set up by hand"
	case store.FactUnconfigured:
		return fmt.Sprintf("no coordinator is configured with %s, for %s", providerAt(f.Name, f.Zone), f.For)
	case store.FactListed:
		return "provider: " + f.Name
	case store.FactUnlisted:
		if f.Count > 1 {
			return "provider: not listed, again"
		}
		return "provider: not listed"
	case store.FactMachine:
		return "provider " + before(f.Name, " ", "ref "+f.Text)
	case store.FactCheck:
		return "check " + f.Name + ": " + f.Text
	case store.FactReport:
		return fmt.Sprintf("report rev %d", f.Rev)
	case store.FactNotice:
		return "notice " + f.Name
	case store.FactRequest:
		return also("request "+f.Name, " by ", f.By)
	case store.FactInstance:
		return "instance " + f.Name
	case store.FactJudged:
		if f.Cause == nil {
			return f.Name
		}
		return f.Name + ": " + Short(*f.Cause)
	case store.FactBalancer:
		return "load balancer " + f.Name + ": " + balancerState(f.Balancer, f.Text)
	case store.FactListAfter:
		return fmt.Sprintf("list begun %s after the removal", f.For)
	case store.FactListAfterFail:
		return fmt.Sprintf("list begun %s after a removal failed", f.For)
	default:
		return ofRecords(f)
	}
}

// ofRecords renders a fact about records, and about clients of a gateway.
func ofRecords(f *store.Fact) string {
	switch f.Kind {
	case store.FactSpec:
		return fmt.Sprintf("groups/%s rev %d", f.Name, f.Rev)
	case store.FactSpecStays:
		return fmt.Sprintf("rev %d stays in force", f.Rev)
	case store.FactGoodSpec:
		return fmt.Sprintf("the whole group was healthy with the spec of rev %d", f.Rev)
	case store.FactGoodTemplate:
		return fmt.Sprintf("status/%s: template %s of revision %d was good", f.By, f.Name, f.Rev)
	case store.FactOrphanGrace:
		return "orphan_grace " + f.For.String()
	case store.FactClaim:
		return fmt.Sprintf("claim of slot %d, template %s", f.Count, f.Name)
	case store.FactKeptHistory:
		return fmt.Sprintf("it keeps at least %s of it", f.For)
	case store.FactFrom:
		return from(f)
	case store.FactCertificate:
		return "its certificate names " + f.Name
	case store.FactSays:
		return "it says that it is " + f.Name
	case store.FactKey:
		return "key " + f.Name
	case store.FactBoot:
		if f.By == "" {
			return "boot " + f.Name
		}
		return fmt.Sprintf("boot %s has epoch %d at %s", f.Name, f.Count, f.By)
	case store.FactReplica:
		return "replica " + f.Name
	default: // the words of a provider or an agent
		return f.Text
	}
}

func from(f *store.Fact) string {
	switch {
	case f.Count == 0:
		return "from " + f.Name
	case f.Name == "":
		return fmt.Sprintf("%d from other addresses", f.Count)
	default:
		return also(fmt.Sprintf("%d from %s", f.Count, f.Name), ", the last said that it is ", f.By)
	}
}

// Follows reports whether a journal entry follows from an operator's order with this ID.
func Follows(e *store.JournalEntry, order string) bool {
	if len(e.Facts) > 0 {
		return slices.ContainsFunc(e.Facts, func(f store.Fact) bool {
			return f.Kind == store.FactRequest && f.Name == order
		})
	}
	mark := Line(&store.Fact{Kind: store.FactRequest, Name: order}) // as a release without facts wrote it
	return slices.ContainsFunc(e.Evidence, func(line string) bool {
		return line == mark || strings.HasPrefix(line, mark+" by ")
	})
}
