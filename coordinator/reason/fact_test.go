package reason

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// TestFacts renders every kind of fact, with all fields and with those alone that it needs.
// proves REC-15
func TestFacts(t *testing.T) {
	cause := store.Cause{Kind: store.CauseHealthy}
	want := map[store.FactKind][]string{
		store.FactStream:        {"stream a since rev 7, epoch 2 at b"},
		store.FactNoSession:     {"alive absent, last state a", "alive absent"},
		store.FactNoList:        {"provider: no list yet"},
		store.FactByHand:        {"no provider lists it: its machine was set up by hand"},
		store.FactUnconfigured:  {"no coordinator is configured with provider a, for 1m0s"},
		store.FactListed:        {"provider: a"},
		store.FactUnlisted:      {"provider: not listed, again", "provider: not listed"},
		store.FactMachine:       {"provider a ref t", "provider ref "},
		store.FactCheck:         {"check a: t"},
		store.FactReport:        {"report rev 7"},
		store.FactNotice:        {"notice a"},
		store.FactRequest:       {"request a by b", "request "},
		store.FactInstance:      {"instance a"},
		store.FactJudged:        {"a: it reports and is healthy"},
		store.FactSpec:          {"groups/a rev 7"},
		store.FactSpecStays:     {"rev 7 stays in force"},
		store.FactGoodSpec:      {"the whole group was healthy with the spec of rev 7"},
		store.FactGoodTemplate:  {"status/b: template a of revision 7 was good"},
		store.FactOrphanGrace:   {"orphan_grace 1m0s"},
		store.FactClaim:         {"claim of slot 2, template a"},
		store.FactBalancer:      {"load balancer a: t"},
		store.FactListAfter:     {"list begun 1m0s after the removal"},
		store.FactListAfterFail: {"list begun 1m0s after a removal failed"},
		store.FactFrom:          {"2 from a, the last said that it is b", "from "},
		store.FactCertificate:   {"its certificate names a"},
		store.FactSays:          {"it says that it is a"},
		store.FactKey:           {"key a"},
		store.FactBoot:          {"boot a has epoch 2 at b", "boot "},
		store.FactReplica:       {"replica a"},
		store.FactKeptHistory:   {"it keeps at least 1m0s of it"},
		"":                      {"t", ""},
	}
	for _, kind := range append(store.FactKinds, "") {
		f := store.Fact{
			Kind: kind, Name: "a", By: "b", Count: 2, Rev: 7, For: store.Duration(time.Minute), Text: "t", Cause: &cause,
		}
		if len(want[kind]) == 0 || Line(&f) != want[kind][0] {
			t.Errorf("%q: %q, want %q", kind, Line(&f), want[kind])
			continue
		}
		if bare := want[kind][1:]; len(bare) > 0 && Line(&store.Fact{Kind: kind}) != bare[0] {
			t.Errorf("%q without fields: %q, want %q", kind, Line(&store.Fact{Kind: kind}), bare[0])
		}
		text, err := json.Marshal(f)
		var back store.Fact
		if err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("%+v comes back as %+v (%v)", f, back, err)
		}
	}
	if len(want) != len(store.FactKinds)+1 {
		t.Errorf("%d kinds are tested, and there are %d", len(want)-1, len(store.FactKinds))
	}
	if others := (store.Fact{Kind: store.FactFrom, Count: 3}); Line(&others) != "3 from other addresses" {
		t.Errorf("others: %q", Line(&others))
	}
}

// TestEvidenceOfTheReleaseBefore shows what has lines of text alone, and finds the order that it
// follows from.
func TestEvidenceOfTheReleaseBefore(t *testing.T) {
	for order, lines := range map[string][]string{
		"r-1": {"stream open since rev 3", "request r-1"},
		"r-2": {"request r-2 by ada"},
	} {
		e := store.JournalEntry{Evidence: lines}
		if !reflect.DeepEqual(Evidence(&e), lines) || !Follows(&e, order) || Follows(&e, "r") {
			t.Errorf("%q: shown as %q, follows from its order: %t, from another: %t", lines, Evidence(&e), Follows(&e, order),
				Follows(&e, "r"))
		}
	}
	e := store.JournalEntry{
		Facts: []store.Fact{{Kind: store.FactRequest, Name: "r-1", By: "ada"}}, Evidence: []string{"old"},
	}
	if got := Evidence(&e); len(got) != 1 || got[0] != "request r-1 by ada" || !Follows(&e, "r-1") || Follows(&e, "r") {
		t.Errorf("facts count before text: %q", got)
	}
}
