package reason

import (
	"github.com/leasehold/leasehold/store"
)

// Short is the cause as the journal's column shows it.
func Short(c store.Cause) string {
	text := Sentence(c)
	if a := c.Also; a != nil {
		if a.Place != "" {
			text = "takes the place of " + a.Place + ": " + text
		}
		text = also(text, "; ", a.Made)
		if a.Keeper != "" {
			text += "; " + a.Keeper + " keeps the slot"
		}
		if a.Until != "" {
			text += "; " + a.Until + " keeps the slot until there is a better one"
		}
		text = also(text, "; it left because: ", a.Left)
	}
	if c.Heir != "" {
		text += "; " + c.Heir + " is healthy in its place"
	}
	return text
}

// Clause returns the cause as it reads after "because". It leaves out the replacement, which such a
// sentence names anyway. The text is what the record holds beside the cause: it is used if an
// earlier release wrote no fields.
func Clause(c store.Cause, text string) string {
	if c.Kind == store.CauseOrder {
		return also("it was ordered by "+c.By, ": ", OneLine(c.Text))
	}
	if c.Kind == store.CauseOutdated {
		return also("it is outdated", ": ", c.Text)
	}
	c.Heir = ""
	if own := Short(c); Sentence(c) != "" {
		text = own
	}
	switch c.Kind {
	case store.CauseUnneeded, store.CauseUnwanted:
		return "it was no longer needed: " + text
	case store.CauseSmaller:
		return "its group got smaller: " + text
	default:
		return text
	}
}

// Recorded returns the cause as a record holds it beside its text: a cause without fields is not
// written twice.
func Recorded(c store.Cause) store.Cause {
	if c.Kind == "" && c.Heir == "" && c.Also == nil {
		c.Text = ""
	}
	return c
}

// Known returns the cause of a record with this text beside it: if an earlier release wrote no
// fields, the text is the cause.
func Known(c store.Cause, text string) store.Cause {
	if Sentence(c) == "" {
		c.Text = text
	}
	return c
}

// Text returns the cause of a record with this text beside it, as a sentence.
func Text(c store.Cause, text string) string {
	if Sentence(c) == "" {
		return text
	}
	return Short(c)
}

// Otherwise returns what would have prevented a decision; "" if nothing is known. At is the time of
// the decision, or "".
func Otherwise(c store.Counterfactual, at string) string {
	if at != "" && c == store.UnlessReported {
		return otherwise[c] + " before " + at
	}
	return otherwise[c]
}

var otherwise = map[store.Counterfactual]string{
	store.UnlessReported:      "it would have been kept if its agent had reported",
	store.UnlessChecksPassed:  "it would have been left alone if its checks had passed before its turn came",
	store.UnlessListedRunning: "it would have been kept if the provider had reported it running",
	store.UnlessReady:         "it would have been left alone if it had become ready in time",
	store.UnlessDown:          "both would have been kept if the original had not recovered",
	store.UnlessRoom:          "it would have been kept if no instance had failed, or if there had been room for both",
	store.UnlessSize:          "it would have been kept if size had not been lowered, or if it were protected",
	store.UnlessProvider:      "it would have waited longer if the provider had not failed for so long",
	store.UnlessFilled: "it would not have been created if the slot had been filled, " +
		"its wait not over, or a budget used up",
	store.UnlessKept:       "it would have been kept if the group had not been deleted",
	store.UnlessAdopted:    "it would have been kept if its agent had connected or an operator had adopted it",
	store.UnlessStarted:    "it would have been kept if the group had not been stopped",
	store.UnlessEndedBadly: "it would have been replaced if its workload had failed",
	store.UnlessOrdered:    "it would not have happened without the order",
	store.UnlessLoad:       "the size would have stayed if load had been near its targets",
	store.UnlessUneven:     "it would have been kept if the zones had been even, or spread were at_creation",
	store.UnlessShared: "it would have been left as it is if there had been spot capacity, " +
		"or if capacity.spot asked for less",
	store.UnlessStrategy: "it would have been left as it is under the strategy opportunistic, " +
		"or if it were protected",
	store.UnlessProgress:      "the roll would have continued if one more instance had become healthy",
	store.UnlessSteady:        "it would have been tried again if it had stayed healthy for flap.reset once",
	store.UnlessTemplateWorks: "the roll would have continued if one instance on the new template had become healthy",
	store.UnlessYounger:       "it would have been kept if it had been younger or protected",
	store.UnlessNoticed:       "it would have been kept if there had been no notice",
	store.UnlessDrained: "it would still drain if its hook had not ended, its drain " +
		"had not been acknowledged, and its time had not run out",
	store.UnlessEvacuated: "it would have been kept if it had not been evacuated",
	store.UnlessManyLost: "the lost instances would have been replaced one after another if " +
		"fewer had been lost at once",
	store.UnlessDamaged:    "work would have continued if at most one record had been damaged",
	store.UnlessUnoffered:  "it would have stayed if agent.version had not named another version",
	store.UnlessUnrecorded: "work would have continued if there had been fewer machines without a record",
}

// IsVerdict reports whether a journal entry is about a verdict. Releases without kinds wrote the
// verdict as What.
func IsVerdict(e *store.JournalEntry) bool {
	return e.Verdict != "" && (e.Kind == store.EntryVerdict || e.Kind == "" && e.What == string(e.Verdict))
}

// IsRefusal reports whether a journal entry only says that an order was refused, perhaps for an
// instance that never existed.
func IsRefusal(e *store.JournalEntry) bool {
	return e.Kind == store.EntryRefusal || e.Kind == "" && e.Rule == "REC-16" && e.Cause.Kind == ""
}

// Matters reports whether a journal entry has a counterfactual that helps a reader who asks about
// an instance's state. Entries about its creation and about orders have none.
func Matters(e *store.JournalEntry) bool {
	switch e.Counterfactual {
	case store.UnlessFilled, store.UnlessOrdered:
		return false
	case "":
		return e.Otherwise != "" && e.Rule != "REC-3" && e.Rule != "REC-16"
	default:
		return true
	}
}

// Prevented says what would have prevented the decision of a journal entry; "" if nothing is known
// or it is trivial.
func Prevented(e *store.JournalEntry, at string) string {
	switch {
	case e.Counterfactual == store.UnlessOrdered || e.Counterfactual == "" && e.Rule == "REC-16":
		return ""
	case e.Counterfactual == "":
		return e.Otherwise
	default:
		return Otherwise(e.Counterfactual, at)
	}
}

// Awaits says what the suspicion in a journal entry waits for.
func Awaits(e *store.JournalEntry) store.Awaited {
	if e.Kind == "" { // written by a release without kinds
		switch e.Rule {
		case "DET-4":
			return store.AwaitsList
		case "SAFE-1":
			return store.AwaitsCalm
		}
	}
	return e.Awaits
}
