package attack

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/stage"
	"github.com/leasehold/leasehold/tests/tier"
)

// streams returns the sessions of all instances: which stream at which replica. A stream that was
// dropped has another epoch.
func (s *siege) streams() map[string]string {
	out := map[string]string{}
	for id, a := range stage.Records[store.Alive](s.Stage, store.KindAlive) {
		out[id] = fmt.Sprintf("%s %s epoch %d", a.Record.State, a.Record.Replica, a.Record.Epoch)
	}
	return out
}

// certificates returns the newest certificates of all instances, as they report them.
func (s *siege) certificates() map[string]store.CertificateReport {
	out := map[string]store.CertificateReport{}
	for id, r := range stage.Records[store.Report](s.Stage, store.KindReports) {
		if r.Record.Certificate != nil {
			out[id] = *r.Record.Certificate
		}
	}
	return out
}

// lifetime sets the validity of new certificates.
func (s *siege) lifetime(t *testing.T, d time.Duration) {
	t.Helper()
	shard := s.record(t)
	shard.Settings.Certificate = store.Duration(d)
	s.Put(s.Keys.Shard(), store.Encode(shard))
}

// generations is how often each certificate is renewed, at least.
var generations = tier.Pick(2, 6)

// shortLived watches certificates that are valid for seconds: they are renewed over many
// generations, and no stream is dropped for it.
func shortLived(t *testing.T, s *siege) {
	before, streams := s.calm(), s.streams()
	seen := map[string]map[time.Time]bool{}
	s.Await(fmt.Sprintf("%d generations of every certificate", generations), func() bool {
		least := generations
		for id, c := range s.certificates() {
			if seen[id] == nil {
				seen[id] = map[time.Time]bool{}
			}
			seen[id][c.Ends] = true
			least = min(least, len(seen[id]))
		}
		return len(seen) == *honest && least >= generations
	})
	s.kept(t, streams)
	s.untouched(t, before)
}

// exchanged rotates the agents' authority: no stream is dropped, and certificates of the old one
// open nothing afterwards.
func exchanged(t *testing.T, s *siege) {
	before, streams := s.calm(), s.streams()
	old, first := s.stolenAuthority(t), s.issuers()
	began := time.Now()
	t.Log(s.Leasehold("pki", "rotate", "--pki", s.PKI, "--wait", "--timeout", stage.Longest.String()))
	t.Logf("%d agents, exchanged in %s", *honest, time.Since(began).Round(time.Second))
	if now := s.issuers(); len(first) != 1 || len(now) != 1 || first[0] == now[0] {
		t.Errorf("certificates were of %v, and are of %v", first, now)
	}
	s.kept(t, streams)
	s.untouched(t, before)
	if left, err := filepath.Glob(filepath.Join(s.PKI, "agents", "old*")); err != nil || len(left) > 0 {
		t.Errorf("of the old authority there is still %v (%v)", left, err)
	}
	e, victim := s.attacker(), s.Instances("web")[0]
	stolen := old.forge(t, s.agent(victim))
	s.Await("the end of the old authority", func() bool { // each replica looks at its files from time to time
		_, err := e.hello(t, e.connect(t, e.with(stolen)), s.helloOf(victim))
		return err != nil && !errors.Is(err, errRefused)
	})
	s.recorded(t, before, "SEC-1", "authority", e.from)
	s.lifetime(t, store.DefaultShardSettings().Certificate.D()) // from the next renewal on
}

// kept fails if a stream was dropped.
func (s *siege) kept(t *testing.T, streams map[string]string) {
	t.Helper()
	if now := s.streams(); !maps.Equal(now, streams) {
		t.Errorf("streams were dropped: %v, and were %v", now, streams)
	}
}

// issuers returns the authorities of all newest certificates.
func (s *siege) issuers() (out []string) {
	for _, c := range s.certificates() {
		if !slices.Contains(out, c.Issuer) {
			out = append(out, c.Issuer)
		}
	}
	return out
}
