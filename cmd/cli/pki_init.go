package cli

import (
	"context"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// PKIInit is the command pki init.
type PKIInit struct {
	PKIPlace `embed:""`

	Only      string   `help:"Create only this authority, and bring your own for the other: ${enum}." enum:"both,agents,operators" default:"both" placeholder:"WHICH"`
	Workloads string   `help:"Create an authority of this name for the certificates of workloads instead." placeholder:"NAME"`
	Lifetime  Lifetime `help:"Validity, such as 3650d or 87600h (default: agents and workloads 5 years, operators 10)." placeholder:"DURATION"`
}

// madeAuthority is a new authority, for JSON.
type madeAuthority struct {
	Authority   pki.Kind  `json:"authority"`
	Dir         string    `json:"dir"`
	Name        string    `json:"name"`
	Fingerprint string    `json:"fingerprint"`
	Ends        time.Time `json:"ends"`
}

// workloads creates an authority for workloads' certificates.
func (c *PKIInit) workloads(inv *Invocation) error {
	if err := pki.InitWorkloads(c.Dir, c.Workloads, c.Lifetime.or(pki.AgentsLifetime)); err != nil {
		return err
	}
	kind := pki.WorkloadsKind(c.Workloads)
	f, err := pki.Load(c.Dir, kind)
	if err != nil {
		return err
	}
	if done, err := inv.records([]madeAuthority{madeOf(kind, f)}); done {
		return err
	}
	inv.note(`made %s, which ends %s. Copy it to each coordinator's host, and name it in the file of --providers:
  authorities: {%s: {own: {dir: %s, domains: [DOMAIN]}}}`,
		f.Dir, day(inv.env.Now(), f.Issuer.Certificate.NotAfter), c.Workloads, f.Dir)
	return nil
}

func madeOf(kind pki.Kind, f pki.Files) madeAuthority {
	return madeAuthority{
		Authority: kind, Dir: f.Dir, Name: f.Issuer.Certificate.Subject.CommonName,
		Fingerprint: f.Issuer.Fingerprint(), Ends: f.Issuer.Certificate.NotAfter,
	}
}

// Run creates them, and prints where each file belongs.
func (c *PKIInit) Run(_ context.Context, inv *Invocation) error {
	lifetimes := map[pki.Kind]time.Duration{}
	kinds := []pki.Kind{pki.Agents, pki.Operators}
	for kind, usual := range map[pki.Kind]time.Duration{
		pki.Agents:    pki.AgentsLifetime,
		pki.Operators: pki.OperatorsLifetime,
	} {
		if c.Only == "both" || c.Only == string(kind) {
			lifetimes[kind] = c.Lifetime.or(usual)
		}
	}
	if c.Workloads != "" {
		return c.workloads(inv)
	}
	if err := pki.Init(c.Dir, lifetimes); err != nil {
		return err
	}
	made := []madeAuthority{}
	for _, kind := range kinds {
		if _, wanted := lifetimes[kind]; !wanted {
			continue
		}
		f, err := pki.Load(c.Dir, kind)
		if err != nil {
			return err
		}
		made = append(made, madeOf(kind, f))
	}
	if done, err := inv.records(made); done {
		return err
	}
	scr := inv.screen()
	t := output.Table{Columns: []output.Column{{Title: "AUTHORITY"}, {Title: "ENDS"}, {Title: "FILES"}}}
	for _, m := range made {
		t.Add(string(m.Authority), day(inv.env.Now(), m.Ends), filepath.Join(m.Dir, "ca.crt")+", ca.key")
	}
	if err := t.Write(scr, inv.wide()); err != nil {
		return err
	}
	inv.note(`what goes where, below %s:
  each coordinator's host   agents/ (with its key), operators/ca.crt, a certificate issued to it
  each etcd's host          operators/ca.crt, a certificate issued to it with --host
  each operator             operators/ca.crt, a certificate issued to them
  no other host             operators/ca.key: it opens etcd. Keep it where you issue certificates
machines need none of it: they join by a token`, c.Dir)
	program.WriteNext(inv.aside(),
		"leasehold pki issue NAME --host HOST for each etcd, leasehold pki issue NAME for each coordinator and operator")
	return nil
}
