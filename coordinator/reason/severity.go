package reason

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/store"
)

// Severity says how much attention a journal entry deserves.
type Severity string

// The severities, from the least.
const (
	Info     Severity = "info"     // Leasehold's normal work
	Warning  Severity = "warning"  // something failed, or is about to
	Critical Severity = "critical" // Leasehold stops, or doubts its data
)

// Severities lists all of them, from the least.
var Severities = []Severity{Info, Warning, Critical}

// AtLeast reports whether s is as severe as least, or more.
func (s Severity) AtLeast(least Severity) bool {
	return slices.Index(Severities, s) >= slices.Index(Severities, least)
}

// Rules whose entries have a severity of their own. The severity of other entries follows from
// their fields.
var (
	criticalRules = []string{
		"FLAP-3", "FLAP-5", // a slot was given up, a template was blamed
		"ROLL-4", "ROLL-7", // a roll stalled, the breaker opened
		"SAFE-2",                                   // storm
		"SAFE-10", "SAFE-15", "SAFE-16", "SAFE-17", // unreadable or lost records
	}
	warningRules = []string{
		"DAY-2", "DET-18", "FILE-1", "HEAL-1", "LB-2", "PROV-1", "PROV-4", "REC-8", "REC-17", "REC-20", "ROLL-5",
		"SAFE-1", "SAFE-12",
		"SEC-1", "SEC-3", "SEC-5", "SEC-6", "SPOT-2",
	}
	severeVerdicts = []store.Verdict{store.Unhealthy, store.Lost, store.Dead, store.Stuck, store.Doomed}
)

// SeverityOf returns the severity of a journal entry.
func SeverityOf(e *store.JournalEntry) Severity {
	switch {
	case e.Cause.Kind == store.CauseDisturbed: // every change of the leader has one
		return Info
	case slices.Contains(criticalRules, e.Rule), e.Cause.Kind == store.CauseAgentStays:
		return Critical
	case slices.Contains(warningRules, e.Rule), slices.Contains(severeVerdicts, e.Verdict),
		e.Kind == store.EntryRefusal, e.Workload != nil, e.To == store.Deleting && e.Cause.Kind == "":
		return Warning
	default:
		return Info
	}
}

// Headline summarizes an entry in a line, from its typed fields only: it contains nothing that a
// workload, a check or a provider printed.
func Headline(e *store.JournalEntry) string {
	about := e.Instance
	if about == "" {
		about = e.Group
	}
	var what string
	switch {
	case e.Claimed:
		return "a client that calls itself an instance was refused"
	case e.Kind == store.EntryVerdict:
		what = "is " + string(e.Verdict)
	case e.Workload != nil:
		what = "its workload ended"
	case e.To != "" && e.Replacement != "":
		what = fmt.Sprintf("%s, replaced by %s", e.To, e.Replacement)
	case e.To != "" && e.Cause.Heir != "":
		what = fmt.Sprintf("%s, as %s is healthy in its place", e.To, e.Cause.Heir)
	case e.To != "":
		what = string(e.To)
	case e.Replacement != "" && e.Verdict != "":
		what = fmt.Sprintf("is %s, replacement %s requested", e.Verdict, e.Replacement)
	case e.Replacement != "":
		what = fmt.Sprintf("replacement %s requested", e.Replacement)
	case e.Instance != "" && e.Kind == store.EntryCall:
		what = "a call of its provider or load balancer"
	case e.Instance != "":
		// the sentences of effects with fields may contain words of a provider or an agent
		what = cmp.Or(effects[e.Effect.Kind], "a change of the instance")
	default:
		what = e.What // of a group or the shard: names and numbers
	}
	if about == "" {
		return what
	}
	return about + ": " + what
}
