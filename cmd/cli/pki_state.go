package cli

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// pkiDocument is the JSON form of pki show.
type pkiDocument struct {
	Dir         string              `json:"dir"`
	Authorities []authorityState    `json:"authorities"`
	Rotation    *rotationState      `json:"rotation,omitempty"`
	Issued      []issuedCertificate `json:"issued"`
	Replicas    []replicaTrust      `json:"replicas"`
	Agents      *agentsTrust        `json:"agents,omitempty"`
	// The authorities for workloads' certificates, and the certificates that are not theirs (yet).
	Workloads []story.WorkloadAuthority    `json:"workloads"`
	Unissued  []story.UnissuedCertificates `json:"workloads_unissued"`
	Soonest   *soonest                     `json:"ends_first,omitempty"`
	Unseen    []string                     `json:"not_seen"`
	Warnings  []string                     `json:"warnings"`
}

// authorityState is one certificate of an authority.
type authorityState struct {
	Authority   pki.Kind  `json:"authority"`
	State       string    `json:"state"` // issues, next or old
	Name        string    `json:"name"`
	Fingerprint string    `json:"fingerprint"`
	Begins      time.Time `json:"begins"`
	Ends        time.Time `json:"ends"`
	Key         string    `json:"key"` // here, missing, or - where none is needed
}

// rotationState is the progress of a rotation of the agents' authority.
type rotationState struct {
	Stage pki.Stage    `json:"stage"`
	Step  rotationStep `json:"next_step"`
	Waits *[]cutOff    `json:"waits_for,omitempty"` // nil: unknown, because etcd did not answer
}

// replicaTrust is what a replica reports.
type replicaTrust struct {
	ID       string `json:"id"`
	Issuer   string `json:"issuer"`
	Believes bool   `json:"believes_all"`
}

// agentsTrust summarizes what agents report.
type agentsTrust struct {
	Count   int       `json:"count"`
	Believe int       `json:"believe_all"`
	Holding []holding `json:"holding"`
}

// holding are the agents whose newest certificate was issued by one authority.
type holding struct {
	Issuer    string    `json:"issuer"` // "": not reported
	Count     int       `json:"count"`
	First     string    `json:"first,omitempty"` // the agent whose certificate ends first
	FirstEnds time.Time `json:"first_ends,omitzero"`
}

// soonest is the certificate that ends first.
type soonest struct {
	What string    `json:"what"`
	Ends time.Time `json:"ends"`
}

// pkiState is all that is known about the certificates.
type pkiState struct {
	pkiDocument
	now    time.Time
	agents *pki.Files // nil: not here
	ends   []certificateEnd
}

// certificateEnd is the end of a certificate, which may be near.
type certificateEnd struct {
	what, next   string
	begins, ends time.Time
	most         time.Duration // time before its end from which it counts as near, at most
}

// How long before the end of a certificate there is a warning: for one that lasts less than five
// times that, a fifth of its validity.
const (
	authorityNear = 180 * 24 * time.Hour // its certificates get shorter and shorter
	issuedNear    = 30 * 24 * time.Hour
)

func (e certificateEnd) near(now time.Time) bool {
	return e.ends.Sub(now) < min(e.most, e.ends.Sub(e.begins)/5)
}

// readPKI reads the directory. A missing part is reported but is no error, unless everything is
// missing.
func readPKI(dir string, now time.Time) (*pkiState, error) {
	p := &pkiState{now: now, pkiDocument: pkiDocument{
		Dir: dir, Authorities: []authorityState{}, Issued: []issuedCertificate{}, Replicas: []replicaTrust{},
		Unseen: []string{}, Warnings: []string{},
		Workloads: []story.WorkloadAuthority{}, Unissued: []story.UnissuedCertificates{},
	}}
	var missing error
	for _, kind := range []pki.Kind{pki.Agents, pki.Operators} {
		f, err := pki.Load(dir, kind)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = errors.Join(missing, err)
			p.Unseen = append(p.Unseen, joined(err))
		case err != nil:
			return nil, err
		default:
			p.takeFiles(kind, f)
		}
	}
	if len(p.Authorities) == 0 {
		var first *pki.Problem
		if errors.As(missing, &first) {
			return nil, first
		}
		return nil, missing
	}
	issued, unreadable, err := pki.ListIssued(dir)
	if errors.Is(err, os.ErrPermission) {
		unreadable, err = append(unreadable, err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	p.Unseen = append(p.Unseen, unreadable...)
	for _, i := range issued {
		p.Issued = append(p.Issued, issuedRecord(i))
		p.ends = append(p.ends, certificateEnd{
			shownFile(dir, i.File), "leasehold pki issue " + i.Name() + " --renew",
			i.Certificate.NotBefore, i.Certificate.NotAfter, issuedNear,
		})
	}
	return p, nil
}

func (p *pkiState) takeFiles(kind pki.Kind, f pki.Files) {
	one := func(state string, c *x509.Certificate, ends time.Time, key string) {
		p.Authorities = append(p.Authorities, authorityState{
			Authority: kind, State: state, Name: c.Subject.CommonName,
			Fingerprint: pki.Signer{Certificate: c}.Fingerprint(), Begins: c.NotBefore, Ends: ends, Key: key,
		})
	}
	key := func(s pki.Signer) string {
		if s.Key == nil {
			return "missing"
		}
		return "here"
	}
	for _, c := range f.Old {
		if !c.Equal(f.Issuer.Certificate) {
			one("old", c, c.NotAfter, "-")
		}
	}
	one("issues", f.Issuer.Certificate, f.Issuer.Ends(), key(f.Issuer))
	next := "create another one: leasehold pki init --only operators in a new directory"
	if kind == pki.Agents {
		next = "leasehold pki rotate --wait"
		p.agents = &f
		p.Rotation = &rotationState{Stage: f.Stage(), Step: stepAfter(f)}
	}
	if f.Next != nil {
		one("next", f.Next.Certificate, f.Next.Ends(), key(*f.Next))
	}
	p.ends = append(p.ends, certificateEnd{
		"the " + string(kind) + "' authority", next, f.Issuer.Certificate.NotBefore,
		f.Issuer.Ends(), authorityNear,
	})
}

// takeWorkloads adds what replicas and agents report of workloads' certificates.
func (p *pkiState) takeWorkloads(seen trustSeen) {
	var replicas []store.Replica
	var instances []store.Instance
	reports := map[string]*store.Report{}
	for _, r := range seen.replicas {
		replicas = append(replicas, r.Record)
	}
	for _, a := range seen.agents {
		instances = append(instances, a.record)
		reports[a.id] = a.report
	}
	p.Workloads, p.Unissued = story.WorkloadAuthorities(replicas, instances, reports)
	for _, problem := range story.AuthorityProblems(replicas, p.now) {
		p.Warnings = append(p.Warnings, problem.What+"; "+problem.Remedies.String())
	}
}

// take adds what replicas and agents report.
func (p *pkiState) take(seen trustSeen) {
	trusting := trustDigests(*p.agents)
	for _, r := range seen.replicas {
		p.Replicas = append(p.Replicas, replicaTrust{r.Record.ID, r.Record.Issuer, trusting[r.Record.Trust]})
	}
	cut := cutOffBy(*p.agents, seen, p.now)
	if cut == nil {
		cut = []cutOff{}
	}
	p.Rotation.Waits = &cut
	sum := agentsTrust{Count: len(seen.agents), Holding: []holding{}}
	for _, a := range seen.agents {
		trust, certificate := a.said()
		if trusting[trust] {
			sum.Believe++
		}
		issuer, ends := "", time.Time{}
		if certificate != nil {
			issuer, ends = certificate.Issuer, certificate.Ends
		}
		i := slices.IndexFunc(sum.Holding, func(h holding) bool { return h.Issuer == issuer })
		if i < 0 {
			i = len(sum.Holding)
			sum.Holding = append(sum.Holding, holding{Issuer: issuer})
		}
		h := &sum.Holding[i]
		h.Count++
		if certificate != nil && (h.FirstEnds.IsZero() || ends.Before(h.FirstEnds)) {
			h.First, h.FirstEnds = a.id, ends
		}
	}
	slices.SortFunc(sum.Holding, func(a, b holding) int { return cmp.Compare(a.Issuer, b.Issuer) })
	p.Agents = &sum
	for _, h := range sum.Holding {
		if h.First != "" && !p.now.Before(h.FirstEnds) {
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("the certificate of %s has expired: it can only be replaced", h.First))
		}
	}
}

// warn finds what ends first, and what ends soon.
func (p *pkiState) warn() {
	ends := p.ends
	if p.Agents != nil {
		for _, h := range p.Agents.Holding {
			if h.First != "" {
				// Agents renew by themselves, so a certificate of theirs that is about to expire is
				// no reason for a warning.
				ends = append(ends, certificateEnd{
					what: "the certificate of agent " + h.First, begins: h.FirstEnds,
					ends: h.FirstEnds,
				})
			}
		}
	}
	for _, e := range ends {
		if p.Soonest == nil || e.ends.Before(p.Soonest.Ends) {
			p.Soonest = &soonest{e.what, e.ends}
		}
		switch {
		case e.most == 0:
		case !p.now.Before(e.ends):
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s expired on %s: %s", e.what, day(p.now, e.ends), e.next))
		case e.near(p.now):
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("%s ends on %s%s: %s", e.what, day(p.now, e.ends), within(p.now, e.ends), e.next))
		}
	}
	for _, r := range p.Replicas {
		if !r.Believes {
			p.Warnings = append(p.Warnings,
				fmt.Sprintf("replica %s uses other authorities than these files: copy them to its host, "+
					"unless it reloads them within a few seconds", r.ID))
		}
	}
}
