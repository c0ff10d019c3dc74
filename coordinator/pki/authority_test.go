package pki

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/reload"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(t *testing.T, dir string)
		want string
		next string
	}{
		"no directory": {
			func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
			"there is no certificate authority in", "leasehold pki init",
		},
		"no certificate": {
			func(t *testing.T, dir string) { must(t, os.Remove(dir+"/agents/ca.crt")) },
			"ca.crt is missing", "leasehold pki init",
		},
		"no key": {
			func(t *testing.T, dir string) { must(t, os.Remove(dir+"/agents/ca.key")) },
			"ca.key is missing", "copy it",
		},
		"a key others read": {
			func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/agents/ca.key", 0o640)) },
			"mode 0640", "chmod 600 ",
		},
		"others may write": {
			func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/agents", 0o770)) }, "mode 0770",
			"chmod 700 ",
		},
		"another's key": {func(t *testing.T, dir string) {
			must(t, os.Rename(dir+"/operators/ca.key", dir+"/agents/ca.key"))
		}, "is not the key of ca.crt", "put the key"},
		"no PEM": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(dir+"/agents/ca.crt", []byte("{}"), 0o600))
		}, "no certificate authority to trust", "PEM"},
		"one authority": {oneAuthority, "are one authority", "--only agents"},
		"no authority's": {
			func(t *testing.T, dir string) { notAuthority(t, dir) },
			"is not a certificate authority's", "PEM",
		},
		"allows clients only": {
			func(t *testing.T, dir string) { forClients(t, dir) }, "would not be believed",
			"pki show",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newPlace(t, AgentsLifetime)
			open(t, dir)
			c.harm(t, dir)
			_, err := Open(dir, nil)
			var p *Problem
			if !errors.As(err, &p) || !strings.Contains(p.What, c.want) || !strings.Contains(p.Next, c.next) {
				t.Fatalf("got %v, want %q with %q to do", err, c.want, c.next)
			}
		})
	}
}

func oneAuthority(t *testing.T, dir string) {
	must(t, os.Rename(dir+"/operators/ca.crt", dir+"/agents/ca.crt"))
	must(t, os.Rename(dir+"/operators/ca.key", dir+"/agents/ca.key"))
	must(t, os.CopyFS(dir+"/operators", os.DirFS(dir+"/agents")))
}

// notAuthority puts an agent's certificate in the place of the authority's.
func notAuthority(t *testing.T, dir string) {
	s := load(t, dir, Agents).Issuer
	must(t, os.WriteFile(dir+"/agents/ca.crt", certificatePEM(agentCertificate(t, s, web, time.Hour).Leaf), 0o600))
}

// forClients makes an authority that may certify clients only.
func forClients(t *testing.T, dir string) {
	s := load(t, dir, Agents).Issuer
	c := *s.Certificate
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, s.Key.Public(), s.Key)
	must(t, err)
	made, err := x509.ParseCertificate(der)
	must(t, err)
	must(t, os.WriteFile(dir+"/agents/ca.crt", certificatePEM(made), 0o600))
}

func TestAnAuthorityThatHasEndedIsNotOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newPlace(t, time.Hour)
		open(t, dir)
		<-time.After(time.Hour + time.Second)
		if _, err := Open(dir, nil); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Fatalf("got %v", err)
		}
	})
}

// Files that are harmed while it runs change nothing; once they are good and stay so, they count.
func TestRunFollowsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newPlace(t, AgentsLifetime)
		a := open(t, dir)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		defer func() { stop(); <-ended }()
		first := a.Trust()

		changed := a.Changed()
		for name, harm := range map[string]func(path string) error{
			"gone":  func(path string) error { return os.Remove(path) },
			"half":  func(path string) error { return os.Truncate(path, 100) },
			"empty": func(path string) error { return os.Truncate(path, 0) },
			"open":  func(path string) error { return os.Chmod(path, 0o644) },
		} {
			for _, file := range []string{caCert, caKey} {
				if name == "open" && file == caCert {
					continue
				}
				path := filepath.Join(dir, string(Agents), file)
				was, err := os.ReadFile(path)
				must(t, err)
				must(t, harm(path))
				<-time.After(5 * reload.Every)
				synctest.Wait()
				if a.Trust().Digest() != first.Digest() || isClosed(changed) {
					t.Fatalf("%s %s: trust has changed", file, name)
				}
				if agentCertificate(t, a.issuer(), web, time.Hour) == nil {
					t.Fatal("no longer issues")
				}
				must(t, os.WriteFile(path, was, 0o600))
				must(t, os.Chmod(path, 0o600))
			}
		}

		must(t, Introduce(dir, AgentsLifetime))
		<-changed
		if now := a.Trust(); len(now.Authorities) != 2 || now.Issuer != first.Issuer {
			t.Fatalf("after the introduction: %d believed, issuer %s", len(now.Authorities), now.Issuer)
		}
	})
}

// An operator copies an authority to this host file by file, more slowly than the files are read:
// only a state that lasts counts, so that an intermediate state cuts no agent off.
func TestRunWaitsUntilFilesStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := newPlace(t, AgentsLifetime)
		there := copyDir(t, here)
		must(t, Introduce(there, AgentsLifetime))
		must(t, Promote(there))
		a := open(t, here)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		defer func() { stop(); <-ended }()
		first, changed := a.Trust(), a.Changed()
		for _, name := range []string{caKey, caCert, oldCert} {
			data, err := os.ReadFile(filepath.Join(there, string(Agents), name))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(here, string(Agents), name), data, 0o600))
			if name != oldCert {
				<-time.After(reload.Every + reload.Every/2)
			}
		}
		<-changed
		if now := a.Trust(); !now.Believes(first.Issuer) || now.Issuer == first.Issuer {
			t.Fatal("an authority was dropped while its files were copied")
		}
	})
}

// lookTwice has it take up what has changed.
func lookTwice(a *Authority) {
	a.followed.Look()
	<-time.After(settle)
	if a.followed.Look() {
		a.takeUp()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestOwnCertificateIsRenewedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newPlace(t, AgentsLifetime)
		a := open(t, dir)
		own := func() string {
			t.Helper()
			c, err := a.Certificate(replica)
			must(t, err)
			if !time.Now().Before(c.Leaf.NotAfter) || c.Leaf.NotAfter.After(time.Now().Add(ownLifetime)) {
				t.Fatalf("it is %s, ends %s", time.Now(), c.Leaf.NotAfter)
			}
			return identity.Fingerprint(c.Leaf)
		}
		first := own()
		<-time.After(7 * time.Hour)
		if own() != first {
			t.Error("renewed after 7h")
		}
		<-time.After(time.Hour + time.Minute)
		second := own()
		if second == first {
			t.Error("not renewed after 8h")
		}
		must(t, Introduce(dir, AgentsLifetime))
		lookTwice(a)
		if own() != second {
			t.Error("renewed when the next authority was introduced")
		}
		must(t, Promote(dir))
		lookTwice(a)
		if own() == second {
			t.Error("not renewed when another issues")
		}
		if _, err := a.Certificate(web); err == nil {
			t.Error("made a certificate of an agent for itself")
		}
	})
}

// A coordinator whose clock jumps has a certificate at once that is valid by its clock before and
// after: agents that have the right time can come back, whether the clock was set right or wrong,
// or the host has slept.
//
// proves SAFE-13, SEC-3
func TestOwnCertificateIsValidWhenTheClockHasJumped(t *testing.T) {
	for name, by := range map[string]time.Duration{
		"ahead": 2 * ownLifetime, "behind": -3 * clocks / 2,
		"behind the authority": -2 * AgentsLifetime, "past the authority": 2 * AgentsLifetime,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := open(t, newPlace(t, AgentsLifetime))
				agent := identity.ClientConfig(shardID, agentCertificate(t, a.issuer(), web, 24*time.Hour), a.Trust())
				// No test can set the wall clock alone. The agent has the bubble's time.
				jump := func(by time.Duration) {
					a.wall = func() time.Time { return time.Now().Round(0).Add(by) }
				}
				check := func(when string, others ...time.Duration) {
					t.Helper()
					own := serves(t, a)
					if _, server, client := meet(t, own, agent); server != nil || client != nil {
						t.Errorf("%s: server %v, agent %v", when, server, client)
					}
					c, err := a.Certificate(replica)
					must(t, err)
					for _, other := range others {
						now := time.Now().Add(other)
						if now.Before(c.Leaf.NotBefore) || now.After(c.Leaf.NotAfter) {
							t.Errorf("%s: valid from %s to %s, and for another agent it is %s", when, c.Leaf.NotBefore,
								c.Leaf.NotAfter, now)
						}
					}
				}
				check("at first")
				jump(by)
				if by.Abs() < AgentsLifetime {
					check("jumped", by)
				} else {
					check("jumped")
				}
				first, err := a.Certificate(replica)
				must(t, err)
				<-time.After(9 * time.Hour)
				check("renewed")
				second, err := a.Certificate(replica)
				must(t, err)
				if second == first {
					t.Error("not renewed after 9h")
				}
				jump(0)
				check("set right")
				if third, err := a.Certificate(replica); err != nil || third != second {
					t.Errorf("replaced, though it was made for this time, too: %v", err)
				}
			})
		})
	}
}

// proves SEC-3: while one authority follows another, both ends believe each other at every step and
// after every single rename.
func TestRotationCutsNobodyOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := newPlace(t, AgentsLifetime)
		a := open(t, dir)
		trust := a.Trust()
		own := agentCertificate(t, a.issuer(), web, 24*time.Hour)
		check := func(step string) {
			t.Helper()
			_, serverErr, clientErr := meet(t, serves(t, a), identity.ClientConfig(shardID, own, trust))
			if serverErr != nil || clientErr != nil {
				t.Fatalf("%s: server %v, agent %v", step, serverErr, clientErr)
			}
		}
		for round := range 3 {
			for step, do := range []func() error{
				func() error { return Introduce(dir, AgentsLifetime) }, func() error { return Promote(dir) },
				func() error { return Retire(dir) },
			} {
				must(t, do())
				lookTwice(a)
				check(fmt.Sprintf("round %d step %d, the agent as before", round, step))
				trust = a.Trust()
				check(fmt.Sprintf("round %d step %d, the agent has heard of it", round, step))
				own = agentCertificate(t, a.issuer(), web, 24*time.Hour)
				check(fmt.Sprintf("round %d step %d, the agent has another certificate", round, step))
			}
		}
	})
}
