package files

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// testCA answers requests as a coordinator does.
type testCA struct {
	certificate *x509.Certificate
	key         crypto.Signer
	life        time.Duration
	off         time.Duration // what its clock has beyond the right time
	requests    int
	problem     string
	silent      bool
	twice       bool   // each answer comes twice, the first time for another key
	seen        []byte // everything that the agent has sent
}

func newTestCA(t *testing.T) *testCA {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(10000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, _ = x509.ParseCertificate(der)
	return &testCA{certificate: c, key: key, life: time.Hour}
}

func (m *machine) sign(ask *protocol.SignRequest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ca.requests++
	m.ca.seen = append(m.ca.seen, ask.GetRequest()...)
	if m.ca.silent {
		return
	}
	answer := &protocol.Signed{Path: ask.GetPath(), Version: ask.GetVersion(), Problem: m.ca.problem}
	r, err := x509.ParseCertificateRequest(ask.GetRequest())
	if err == nil {
		err = r.CheckSignature()
	}
	if err != nil || r.Subject.CommonName != "web-0-a" {
		m.t.Errorf("request of %s: %v", r.Subject, err)
		return
	}
	if m.ca.twice {
		other, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		m.Signed(&protocol.Signed{Path: ask.GetPath(), Version: ask.GetVersion(), Chain: m.ca.chain(m.t, r,
			other.Public())})
	}
	if m.ca.problem == "" {
		now := time.Now().Add(m.clock)
		answer.Chain, answer.Issued, answer.Ends = m.ca.chain(m.t, r,
			r.PublicKey), timestamppb.New(now), timestamppb.New(now.Add(m.ca.life))
	}
	go m.Signed(answer)
}

func (ca *testCA) chain(t *testing.T, r *x509.CertificateRequest, key crypto.PublicKey) [][]byte {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: r.DNSNames, IPAddresses: r.IPAddresses,
		NotBefore: time.Now().Add(ca.off - 24*time.Hour), NotAfter: time.Now().Add(ca.off + 1000*time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.certificate, key, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{der}
}

func (m *machine) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ca.requests
}

// certified is a file with a certificate.
func certified(version string) *protocol.File {
	return &protocol.File{
		Path: "${dir}/tls.crt", Version: version, Mode: 0o644, OnChange: "reload",
		Certificate: &protocol.CertificateOrder{
			Names: []string{"192.0.2.1", "web-0-a.web.internal"},
			Key:   "${dir}/tls.key", KeyMode: 0o600, KeyType: "ecdsa",
		},
	}
}

// pair returns the fingerprint of the certificate on disk, whose key has to be beside it.
func (m *machine) pair() string {
	m.t.Helper()
	c, err := tls.LoadX509KeyPair(filepath.Join(m.root, "tls.crt"), filepath.Join(m.root, "tls.key"))
	if err != nil {
		m.t.Fatalf("%v; %v", err, m.States())
	}
	return printOf(c.Certificate)
}

func (m *machine) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// A certificate is renewed after two thirds of its life by the coordinators' clock, over another
// key, and what follows a change follows each renewal. The key is in no request.
//
// proves FILE-2
func TestCertificatesAreRenewed(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.want("c1", certified("v1"))
		first := m.pair()
		if !m.Settled("c1") || m.Missing() != "" || m.reloads != 1 || m.requests() != 1 {
			t.Errorf("settled %t, missing %q, %d reloads, %d requests", m.Settled("c1"), m.Missing(), m.reloads,
				m.requests())
		}
		key, err := os.ReadFile(filepath.Join(m.root, "tls.key"))
		info, statErr := os.Stat(filepath.Join(m.root, "tls.key"))
		if err = errors.Join(err, statErr); err != nil || info.Mode().Perm() != 0o600 || bytes.Contains(m.ca.seen,
			key) ||
			len(m.hidden) != 1 || m.hidden[0] != string(key) {
			t.Errorf("%v, %v, hidden %d", err, info, len(m.hidden))
		}
		if s := m.States()[0]; s.State != Delivered || time.Until(s.Ends) != time.Hour || s.Version != "v1" {
			t.Errorf("state %+v", s)
		}
		pass(39 * time.Minute)
		if m.pair() != first {
			t.Error("renewed before two thirds of its life were over")
		}
		pass(4 * time.Minute)
		second := m.pair()
		if second == first || m.reloads != 2 || m.requests() != 2 {
			t.Errorf("%d reloads, %d requests", m.reloads, m.requests())
		}
		if now, _ := os.ReadFile(filepath.Join(m.root, "tls.key")); bytes.Equal(now, key) {
			t.Error("renewed over the same key")
		}
		// The coordinators' clock is an hour ahead of what it was: the certificate has ended, by
		// that.
		m.change(func() { m.clock = time.Hour })
		pass(10 * time.Second)
		third := m.pair()
		if third == second {
			t.Error("not renewed by the coordinators' clock")
		}
		m.change(func() { m.clock = -1000 * time.Hour })
		pass(43 * time.Minute)
		if m.pair() == third {
			t.Error("a clock that was set back delays the renewal")
		}
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// If the stream ends before the answer arrives, the request is repeated on the next stream, not
// only after the timeout.
//
// proves FILE-2
func TestACertificateIsAskedForOnTheNextStream(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.ca.silent = true
		m.want("c1", certified("v1"))
		pass(time.Second)
		m.change(func() { m.ca.silent = false })
		pass(time.Second)
		if m.Settled("c1") {
			t.Fatal("it is there though no answer came")
		}
		m.Reconnected()
		pass(time.Second)
		if !m.Settled("c1") {
			t.Errorf("states %+v", m.States())
		}
	})
}

// An authority that does not answer, refuses, or answers something else delays nothing else and
// leaves the files unchanged; late answers are ignored.
//
// proves FILE-2
func TestAnAuthorityThatFails(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.ca.silent = true
		m.want("c1", certified("v1"), m.file("${dir}/a", "a", nil))
		if m.on("a") != "a" || m.Settled("c1") || m.States()[0].State != Missing || !strings.Contains(m.Missing(),
			"its authority was asked for it") {
			t.Errorf("a is %q, states %+v", m.on("a"), m.States())
		}
		pass(signWait + time.Second)
		if s := m.States()[0]; !strings.Contains(s.Why, "did not answer within 45s") {
			t.Errorf("state %+v", s)
		}
		m.change(func() { m.ca.silent, m.ca.problem = false, "authority web: the program was killed" })
		pass(2 * signWait)
		if s := m.States()[0]; s.Why != "authority web: the program was killed" || s.State != Missing {
			t.Errorf("state %+v", s)
		}
		m.change(func() { m.ca.problem, m.ca.twice = "", true })
		pass(maxRetry + time.Second)
		first := m.pair()
		if !m.Settled("c1") {
			t.Error("not settled")
		}
		// It fails again when it is time to renew: the certificate stays, and the report says until
		// when.
		m.change(func() { m.ca.problem = "the authority is away" })
		pass(45 * time.Minute)
		if s := m.States()[0]; s.State != Error || s.Why != "it is not renewed: the authority is away" ||
			s.Ends.IsZero() || m.pair() != first || m.Missing() != "" {
			t.Errorf("state %+v", s)
		}
		asked := m.requests()
		pass(10 * time.Minute)
		if n := m.requests() - asked; n < 5 || n > 12 {
			t.Errorf("asked %d times in 10 minutes", n)
		}
		// So does it when what comes is of another time.
		m.change(func() { m.ca.problem, m.ca.off = "", 2000*time.Hour })
		pass(maxRetry + time.Second)
		if s := m.States()[0]; !strings.Contains(s.Why, "and not now: a clock is wrong") || m.pair() != first {
			t.Errorf("state %+v", s)
		}
		m.change(func() { m.ca.off = 0 })
		pass(maxRetry + time.Second)
		if m.pair() == first || m.States()[0].State != Delivered {
			t.Errorf("state %+v", m.States()[0])
		}
	})
}

// Another authority, or other names, ask for another certificate: where only the authority is
// another one, spread over some seconds, and once.
//
// proves FILE-2
func TestAnotherAuthority(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.want("c1", certified("v1"))
		first := m.pair()
		m.jitter = 0.5
		m.want("c1", certified("v2"))
		if m.pair() != first {
			t.Error("asked at once")
		}
		pass(reissueOver/2 + time.Second)
		second := m.pair()
		if second == first || m.requests() != 2 || m.States()[0].Version != "v2" || m.reloads != 2 {
			t.Errorf("%d requests, %+v", m.requests(), m.States())
		}
		m.want("c2", certified("v3"))
		if m.pair() == second || !m.Settled("c2") {
			t.Error("a change of the group waits")
		}
		// A copied or restarted machine asks for nothing while it has what it needs.
		m.stop()
		m.start()
		m.want("c2", certified("v3"))
		pass(time.Minute)
		if m.requests() != 3 || !m.Settled("c2") || m.reloads != 3 {
			t.Errorf("%d requests, %d reloads after a restart", m.requests(), m.reloads)
		}
	})
}

// What is changed or removed on the machine is issued again, and reported; modes are put right
// without asking anyone.
//
// proves FILE-2
func TestCertificatesAreMended(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.want("c1", certified("v1"))
		requests := 1
		for _, harm := range []struct {
			do  func() error
			why string
		}{
			{func() error { return os.Remove(filepath.Join(m.root, "tls.key")) }, "removed"},
			{func() error { return os.WriteFile(filepath.Join(m.root, "tls.crt"), []byte("x"), 0o600) }, "changed"},
			{func() error { return os.Truncate(filepath.Join(m.root, "tls.key"), 0) }, "changed"},
		} {
			if err := harm.do(); err != nil {
				t.Fatal(err)
			}
			pass(2 * checkEvery)
			m.pair()
			requests++
			if s := m.States()[0]; m.requests() != requests || s.State != Delivered || !strings.Contains(s.Why,
				harm.why) {
				t.Errorf("%d requests, %+v", m.requests(), s)
			}
		}
		if err := os.Chmod(filepath.Join(m.root, "tls.key"), 0o644); err != nil {
			t.Fatal(err)
		}
		pass(2 * checkEvery)
		if info, err := os.Stat(filepath.Join(m.root, "tls.key")); err != nil || info.Mode().Perm() != 0o600 ||
			m.requests() != requests {
			t.Errorf("%v, %v, %d requests", info, err, m.requests())
		}
		m.pair()
	})
}

// One file may have both, and nothing outside of the roots is written.
//
// proves FILE-2
func TestCertificateAndKeyInOneFile(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		both := certified("v1")
		both.Certificate.Key, both.Mode, both.Certificate.KeyType = both.Path, 0o600, "rsa"
		out := certified("v1")
		out.Path, out.Certificate.Key = "${dir}/other.crt", "/etc/tls.key"
		m.want("c1", both, out)
		path := filepath.Join(m.root, "tls.crt")
		if _, err := tls.LoadX509KeyPair(path, path); err != nil {
			t.Error(err)
		}
		if s := m.States()[1]; !strings.Contains(s.Why, "its key: it is in no directory") {
			t.Errorf("state %+v", s)
		}
	})
}

// A full disk is reported, keeps the old pair, and uses up no further signature.
//
// proves FILE-2
func TestACertificateThatCannotBeWritten(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.ca = newTestCA(t)
		m.want("c1", certified("v1"))
		first := m.pair()
		var full atomic.Bool
		full.Store(true)
		m.steps(func(step string) error {
			if full.Load() && step == "write" {
				return syscall.ENOSPC
			}
			return nil
		})
		pass(45 * time.Minute)
		if s := m.States()[0]; s.State != Error || !strings.Contains(s.Why, "it is not renewed: the disk is full") ||
			m.pair() != first || m.requests() != 2 {
			t.Errorf("%d requests, %+v", m.requests(), s)
		}
		full.Store(false)
		pass(maxRetry + time.Second)
		if s := m.States()[0]; s.State != Delivered || m.pair() == first || m.requests() != 2 {
			t.Errorf("%d requests, %+v", m.requests(), s)
		}
	})
}

// Wherever the machine dies, certificate and key match at the latest when the agent is back,
// without a coordinator, and the workload is notified of the change.
//
// proves FILE-2
func TestADeathWhileACertificateIsExchanged(t *testing.T) {
	for step := 0; ; step++ {
		ended := false
		inBubble(t, func(m *machine) {
			m.ca = newTestCA(t)
			m.want("c1", certified("v1"))
			first, n, root, state := m.pair(), 0, t.TempDir(), t.TempDir()
			m.steps(func(string) error {
				if n++; n == step+1 { // a crash here would leave what is on disk now
					return errors.Join(os.CopyFS(root, os.DirFS(m.root)), os.CopyFS(state, os.DirFS(m.cfg.StateDir)))
				}
				return nil
			})
			pass(43 * time.Minute)
			ended = n <= step
			m.stop()
			if !ended {
				m.root, m.cfg.StateDir, m.cfg.Roots, m.cfg.Facts["dir"] = root, state, []string{root}, root
			}
			reloads := m.reloads
			m.change(func() { m.at, m.ca.silent = nil, true })
			m.start()
			m.want("c1", certified("v1"))
			if second := m.pair(); second != first && m.reloads == reloads && !ended {
				t.Errorf("after %d steps the change is not told", step)
			}
			left, err := os.ReadDir(m.root)
			if err != nil || len(left) < 2 {
				t.Errorf("%d files, %v", len(left), err)
			}
		})
		if ended {
			if step < 10 {
				t.Errorf("%d steps only", step)
			}
			return
		}
	}
}
