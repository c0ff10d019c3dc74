package cli

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// rotationStep is the next step of a rotation.
type rotationStep string

// The steps.
const (
	introduce rotationStep = "introduce" // the next authority is created, and trusted from then on
	promote   rotationStep = "promote"   // the next authority issues; the old one is still trusted
	finish    rotationStep = "finish"    // promote was interrupted
	retire    rotationStep = "retire"    // the old one is no longer trusted
)

// cutOff is a replica or agent that a step would disconnect.
type cutOff struct {
	Who string `json:"who"`
	Why string `json:"why"`
}

// stepAfter returns the next step.
func stepAfter(f pki.Files) rotationStep {
	switch {
	case f.Unfinished:
		return finish
	case f.Stage() == pki.Introduced:
		return promote
	case f.Stage() == pki.Promoted:
		return retire
	default:
		return introduce
	}
}

// cutOffBy lists the replicas and agents that the next step would disconnect, or may disconnect.
// Replicas come first: agents learn of authorities from them.
func cutOffBy(f pki.Files, seen trustSeen, now time.Time) []cutOff {
	switch stepAfter(f) {
	case promote:
		return cutOffByPromote(f, seen)
	case retire:
		return cutOffByRetire(f, seen, now)
	default:
		return nil // creating another one is safe, and so is finishing an interrupted promote
	}
}

func cutOffByPromote(f pki.Files, seen trustSeen) (cut []cutOff) {
	trusting := trustDigests(f)
	for _, r := range seen.replicas {
		if !trusting[r.Record.Trust] {
			cut = append(cut, cutOff{
				replicaName(r.Record),
				"does not trust the next authority yet: does it have the files?",
			})
		}
	}
	latest := newest(seen.replicas)
	for _, a := range seen.agents {
		trust, _ := a.said()
		switch {
		case trusting[trust], a.getsPresentTrust(latest):
		case a.newcomer():
			cut = append(cut, cutOff{
				a.id,
				"has not registered yet, and was created before all replicas trusted the next authority",
			})
		case trust == "":
			cut = append(cut, cutOff{a.id, "has not reported which authorities it trusts"})
		default:
			cut = append(cut, cutOff{a.id, "does not trust the next authority yet"})
		}
	}
	return cut
}

func cutOffByRetire(f pki.Files, seen trustSeen, now time.Time) (cut []cutOff) {
	old := map[string]bool{}
	for _, c := range f.Old {
		old[pki.Signer{Certificate: c}.Fingerprint()] = true
	}
	for _, r := range seen.replicas {
		if r.Record.Issuer != f.Issuer.Fingerprint() {
			cut = append(cut, cutOff{
				replicaName(r.Record),
				"does not issue from the new authority yet: does it have the files?",
			})
		}
	}
	latest := newest(seen.replicas)
	for _, a := range seen.agents {
		_, certificate := a.said()
		switch {
		case a.getsPresentTrust(latest):
		case a.newcomer():
			cut = append(cut, cutOff{a.id, "has not registered yet, and may get a certificate of the old authority"})
		case certificate == nil:
			cut = append(cut, cutOff{a.id, "has not reported which certificate it has"})
		case old[certificate.Issuer] && now.Before(certificate.Ends):
			cut = append(cut, cutOff{
				a.id,
				fmt.Sprintf("has a certificate of the old authority, until %s", day(now, certificate.Ends)),
			})
		}
	}
	return cut
}

// getsPresentTrust reports whether the instance is newer than the replicas' records and has not
// registered: its machine gets the replicas' present trust with its bootstrap document.
func (a agentSeen) getsPresentTrust(replicas store.Revision) bool {
	return a.newcomer() && replicas > 0 && (!a.called || a.created > replicas)
}

// newest returns the revision of the latest replica record.
func newest(replicas []store.Versioned[store.Replica]) (at store.Revision) {
	for _, r := range replicas {
		at = max(at, r.Modified)
	}
	return at
}

func replicaName(r store.Replica) string { return "replica " + r.ID }

// fewOf names the first of those that would be disconnected.
func fewOf(cut []cutOff) string {
	names := make([]string, len(cut))
	for i, c := range cut {
		names[i] = c.Who
	}
	return someOf(names)
}
