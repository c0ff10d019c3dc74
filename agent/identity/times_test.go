package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/identity/identitytest"
)

// An agent whose clock is wrong believes a coordinator whose certificate is valid at the received
// time, and at no other time.
//
// proves SAFE-13, SEC-1
func TestTimesAtWhichACoordinatorIsBelieved(t *testing.T) {
	ca := identitytest.New(t, "agents")
	trust := identitytest.Trust(ca)
	own := ca.Own(t, identity.Identity{Shard: "s", Role: identity.Coordinator, Name: "a"}, time.Hour)
	now := time.Now()
	wrong := now.AddDate(20, 0, 0)
	for _, c := range []struct {
		name  string
		times []time.Time
		shard string
		want  bool
	}{
		{"no time is the present", nil, "s", true},
		{"its clock is right", []time.Time{now, now.AddDate(-1, 0, 0)}, "s", true},
		{"its clock is 20 years ahead, and it was told", []time.Time{wrong, now}, "s", true},
		{"its clock is 20 years behind, and it was told", []time.Time{now.AddDate(-20, 0, 0), now}, "s", true},
		{"its clock is wrong, and it does not know", []time.Time{wrong}, "s", false},
		{"both are wrong", []time.Time{wrong, now.AddDate(-20, 0, 0)}, "s", false},
		{"another shard's, at any time", []time.Time{wrong, now}, "other", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := net.Pipe()
			served := make(chan error, 1)
			go func() {
				server := tls.Server(there, identity.ServerConfig(own, trust))
				err := server.Handshake()
				served <- err
				_ = there.Close()
			}()
			client := tls.Client(here, identity.ClientConfig(c.shard, nil, trust, c.times...))
			err := client.Handshake()
			_ = here.Close()
			<-served
			if (err == nil) != c.want {
				t.Fatalf("handshake: %v, want it to succeed: %v", err, c.want)
			}
			var verification *tls.CertificateVerificationError
			if err != nil && !errors.As(err, &verification) {
				t.Errorf("%T does not say that it is the certificate: %v", err, err)
			}
			if !c.want && c.shard == "s" {
				var invalid x509.CertificateInvalidError
				if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
					t.Errorf("%v does not say that it is the time", err)
				}
			}
		})
	}
}
