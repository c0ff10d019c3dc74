package attack

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasehold/leasehold/agent/identity"
)

// identities are attempts to act as an instance.
func identities(t *testing.T, s *siege) {
	victim, other := s.Instances("web")[0], s.Instances("web")[1]
	stolen, foreign := s.stolenAuthority(t), newForger(t)
	changed := func(change func(*paper)) *tls.Certificate {
		p := s.agent(victim)
		change(&p)
		return stolen.forge(t, p)
	}
	for _, try := range []struct {
		name     string
		how      func(e *attacker) credentials.TransportCredentials
		recorded []string // in the journal
	}{
		{
			"no encryption", func(*attacker) credentials.TransportCredentials { return insecure.NewCredentials() },
			[]string{"TLS"},
		},
		{"TLS 1.2", func(*attacker) credentials.TransportCredentials {
			return credentials.NewTLS(&tls.Config{
				MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
				InsecureSkipVerify: true, //nolint:gosec // an attacker trusts every server
			})
		}, []string{"TLS"}},
		{
			"no certificate", func(e *attacker) credentials.TransportCredentials { return e.with(nil) },
			[]string{"certificate", victim},
		},
		{"foreign authority", func(e *attacker) credentials.TransportCredentials {
			return e.with(foreign.forge(t, s.agent(victim)))
		}, []string{"authority"}},
		{"expired", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) { p.from, p.to = -2*time.Hour, -time.Second }))
		}, []string{"expired"}},
		{"not yet valid", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) { p.from, p.to = time.Hour, 2*time.Hour }))
		}, []string{"not valid yet"}},
		{"another instance's certificate", func(e *attacker) credentials.TransportCredentials {
			return e.with(stolen.forge(t, s.agent(other)))
		}, []string{victim, other}},
		{"another shard's certificate", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) {
				p.uri = identity.Identity{Shard: "0123456789abcdef", Role: identity.Agent, Name: victim}.String()
			}))
		}, []string{"0123456789abcdef"}},
		{"a coordinator's certificate", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) {
				p.uri = identity.Identity{Shard: s.shard, Role: identity.Coordinator, Name: victim}.String()
			}))
		}, []string{"coordinator"}},
		{"a server's certificate", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) { p.use = x509.ExtKeyUsageServerAuth }))
		}, []string{"certificate"}},
		{"a certificate without a name", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) { p.uri = "" }))
		}, []string{"certificate"}},
		{"a path for a name", func(e *attacker) credentials.TransportCredentials {
			return e.with(changed(func(p *paper) {
				p.uri = "leasehold://" + s.shard + "/agent/..%2f..%2fgroups%2fweb"
			}))
		}, []string{"certificate"}},
	} {
		s.within(t, try.name, func(t *testing.T) {
			before, e := s.calm(), s.attacker()
			if _, err := e.hello(t, e.connect(t, try.how(e)), s.helloOf(victim)); err == nil {
				t.Fatal("the attacker was welcomed")
			} else {
				t.Log(err)
			}
			entry := s.recorded(t, before, "SEC-1", append(try.recorded, e.from)...)
			t.Logf("%s: %s %v", entry.What, entry.Why, entry.Evidence)
			s.untouched(t, before)
		})
	}
}
