package services

import (
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
)

// Certificates that were made while the clock was ahead are made again once it is right: peers and
// clients refuse them until then.
//
// proves DAY-1, SAFE-13
func TestCertificatesOfAClockThatWasAhead(t *testing.T) {
	c := Credentials{Dir: t.TempDir()}
	issue := func(t *testing.T) map[string]*x509.Certificate {
		if err := c.Issue([]string{"127.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		issued, _, err := pki.ListIssued(c.Dir)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*x509.Certificate{}
		for _, i := range issued {
			all[i.Name()] = i.Certificate
		}
		if len(all) != 2+len(etcdUsers) {
			t.Fatalf("issued: %v", all)
		}
		return all
	}
	synctest.Test(t, func(t *testing.T) { // each of these begins at the same time
		if err := c.MakeAuthorities(); err != nil {
			t.Fatal(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		<-time.After(300 * 24 * time.Hour)
		issue(t)
	})
	synctest.Test(t, func(t *testing.T) {
		made := issue(t)
		for name, certificate := range made {
			if certificate.NotBefore.After(time.Now()) {
				t.Errorf("%s is valid from %s on, and it is %s", name, certificate.NotBefore, time.Now())
			}
		}
		for name, again := range issue(t) {
			if !again.Equal(made[name]) {
				t.Errorf("%s was good, and made again", name)
			}
		}
	})
}
