package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/store"
)

// signers are authorities whose only one is called web.
type signers struct {
	mu       sync.Mutex
	issuer   string
	changed  chan struct{}
	orders   []authority.Order
	hangs    bool
	unlawful error
}

func newSigners() *signers { return &signers{issuer: "first", changed: make(chan struct{})} }

func (s *signers) Trusted(name string) ([]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "web" {
		return nil, "", errors.New("there is no authority " + name)
	}
	return []byte("the bundle of the " + s.issuer), s.issuer, nil
}

func (s *signers) Allowed(string, authority.Order) error { return s.unlawful }

func (s *signers) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *signers) exchange(issuer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = issuer
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *signers) Sign(ctx context.Context, name string, o authority.Order, request []byte) ([][]byte, time.Time,
	error,
) {
	s.mu.Lock()
	s.orders = append(s.orders, o)
	hangs := s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, time.Time{}, ctx.Err()
	}
	return [][]byte{request}, time.Now().Add(o.Lifetime), nil
}

func certificateOf(authority string) store.File {
	return store.File{
		Path: "/tls.crt", Mode: "0644", OnChange: store.FileChange{Do: store.FileReload},
		Certificate: &store.FileCertificate{
			Authority: authority, Names: []string{
				"{{.Facts.instance}}.web.internal",
				"{{host .Facts.address}}",
			}, Key: "/tls.key",
			KeyMode: "0600", KeyType: store.KeyECDSA, Bundle: "/ca.crt", Lifetime: store.Duration(time.Hour),
		},
	}
}

// signing sends a request for a certificate, and returns the answer.
func (a *agent) signing(version string) *protocol.Signed {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "web-0"}}, key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.send(&protocol.AgentMessage{Kind: &protocol.AgentMessage_SignRequest{SignRequest: &protocol.SignRequest{
		Path: "/tls.crt", Version: version, Request: der,
	}}})
	synctest.Wait()
	for range len(a.in) {
		if m := (<-a.in).GetSigned(); m != nil {
			return m
		}
	}
	return nil
}

// An agent receives what to trust and what to ask for. What is signed follows from the record,
// whatever the request says. A stale request, and one while another is under way, sign nothing; an
// authority that hangs delays no report.
//
// proves FILE-2, SEC-1
func TestCertificatesAreSigned(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		ca := newSigners()
		r := w.serveWith("one", func(d *gateway.Deps) { d.Authorities = ca })
		defer r.stop()
		w.workloadRecord("web-0", withFiles(certificateOf("web")))
		r.own = w.ca.agent("web-0", 1000*time.Hour)
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		told, _ := a.files()
		if len(told.GetFiles()) != 2 || told.GetFiles()[0].GetPath() != "/ca.crt" ||
			told.GetFiles()[0].GetOnChange() != "reload" {
			t.Fatalf("told %v", told)
		}
		if got, problem := a.fetch(told.GetFiles()[0]); got != "the bundle of the first" {
			t.Errorf("%q: %s", got, problem)
		}
		f := told.GetFiles()[1]
		if o := f.GetCertificate(); o.GetKey() != "/tls.key" || o.GetKeyMode() != 0o600 || o.GetKeyType() != "ecdsa" ||
			strings.Join(o.GetNames(), " ") != "192.0.2.1 web-0.web.internal" {
			t.Errorf("ordered %v", o)
		}
		answer := a.signing(f.GetVersion())
		if len(answer.GetChain()) != 1 || answer.GetEnds().AsTime().Sub(answer.GetIssued().AsTime()) != time.Hour {
			t.Errorf("answered %v", answer)
		}
		if o := ca.orders[0]; o.Instance != "web-0" || strings.Join(o.Names, " ") != "192.0.2.1 web-0.web.internal" ||
			o.Lifetime != time.Hour {
			t.Errorf("signed for %+v", o)
		}
		if p := a.signing("another").GetProblem(); p != "it has another version by now" || len(ca.orders) != 1 {
			t.Errorf("a stale request: %s, %d signed", p, len(ca.orders))
		}

		ca.exchange("second")
		told, number := a.files()
		if number != 1 || told.GetFiles()[1].GetVersion() == f.GetVersion() {
			t.Errorf("told %d times: %v", number, told)
		}
		if got, _ := a.fetch(told.GetFiles()[0]); got != "the bundle of the second" {
			t.Errorf("the bundle is %q", got)
		}

		ca.mu.Lock()
		ca.hangs = true
		ca.mu.Unlock()
		version := told.GetFiles()[1].GetVersion()
		if answer := a.signing(version); answer != nil {
			t.Errorf("an authority that hangs has answered %v", answer)
		}
		if p := a.signing(version).GetProblem(); p != "another request for it is under way" {
			t.Error(p)
		}
		a.report(&protocol.Report{Healthy: true, Files: []*protocol.FileState{{
			Path: "/tls.crt", State: "error",
			Why: "its authority did not answer",
		}}})
		if got := w.report("web-0").Record.Files; len(got) != 1 || got[0].Why != "its authority did not answer" {
			t.Errorf("stored %+v", got)
		}
		// A request that keeps coming is no agent's.
		for range 60 {
			if r.Streams() == 0 {
				break
			}
			a.signing(version)
			pass(100 * time.Millisecond)
		}
		pass(time.Minute)
		if n := r.Streams(); n != 0 {
			t.Errorf("%d streams: the agent asks without pause", n)
		}
	})
}

// The reason why an agent cannot have a certificate is reported, and nothing is signed.
//
// proves FILE-2
func TestCertificatesThatCannotBe(t *testing.T) {
	problem := func(w *world, d func(*gateway.Deps), f store.File) string {
		w.t.Helper()
		r := w.serveWith("one", d)
		defer r.stop()
		w.workloadRecord("web-0", withFiles(f))
		if w.ca != nil {
			r.own = w.ca.agent("web-0", time.Hour)
		}
		a := r.welcomed(newest("web-0"))
		defer a.hangUp()
		told, _ := a.files()
		last := told.GetFiles()[len(told.GetFiles())-1]
		if last.GetVersion() != "" {
			w.t.Errorf("told %v", told)
		}
		if p := a.signing("v").GetProblem(); p != last.GetProblem() {
			w.t.Errorf("asked for it nevertheless: %s", p)
		}
		return last.GetProblem()
	}
	with := func(d *gateway.Deps) { d.Authorities = newSigners() }
	wrong := certificateOf("web")
	wrong.Certificate.Names = []string{"{{.Facts.slot}}.*"}
	for want, c := range map[string]struct {
		with func(*gateway.Deps)
		file store.File
	}{
		"authority web: this coordinator does not have it, it has none: name it in the file of --providers": {
			func(*gateway.Deps) {}, certificateOf("web"),
		},
		"there is no authority corp": {with, certificateOf("corp")},
		`names[0]: "0.*": must become a host name in lower case without wildcard, or an IP address`: {with, wrong},
		"it may not": {func(d *gateway.Deps) {
			d.Authorities = &signers{unlawful: errors.New("it may not"), changed: make(chan struct{})}
		}, certificateOf("web")},
	} {
		inSecuredWorld(t, func(w *world) {
			if got := problem(w, c.with, c.file); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
	inWorld(t, func(w *world) {
		if got := problem(w, with,
			certificateOf("web")); got != "the stream to the agent is not secured, so no certificate is sent over it" {
			t.Error(got)
		}
	})
}
