package cli

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/store"
)

// PKIs are the commands about certificates.
type PKIs struct {
	Init   PKIInit   `cmd:"" help:"Create the shard's certificate authorities."`
	Issue  PKIIssue  `cmd:"" help:"Issue a certificate to a person, a coordinator or a server."`
	Rotate PKIRotate `cmd:"" help:"Rotate the agents' certificate authority, one safe step at a time."`
	Show   PKIShow   `cmd:"" help:"Show the authorities, which replicas and agents use them, and what expires soon."`
}

// PKIPlace holds the directory of the authorities.
type PKIPlace struct {
	Dir string `name:"pki" help:"Directory of the certificate authorities (default: ${default})." env:"LEASEHOLD_PKI" default:"${pki_dir}" type:"path" placeholder:"DIR"`
}

// Lifetime is the validity of a certificate, in days if wanted.
type Lifetime time.Duration

// UnmarshalText parses the argument.
func (l *Lifetime) UnmarshalText(text []byte) error { return (*Ago)(l).UnmarshalText(text) }

// or returns the lifetime, or the default.
func (l Lifetime) or(usual time.Duration) time.Duration {
	if l == 0 {
		return usual
	}
	return time.Duration(l)
}

// shortPrint returns as much of a fingerprint as people compare.
func shortPrint(fingerprint string) string { return fingerprint[:min(8, len(fingerprint))] }

// day is story.Day.
func day(now, ends time.Time) string { return story.Day(now, ends) }

// trustSeen is what the replicas and agents of a shard report about certificates.
type trustSeen struct {
	replicas []store.Versioned[store.Replica]
	agents   []agentSeen // ordered by ID
}

// agentSeen is an instance whose machine has an agent or is about to have one.
type agentSeen struct {
	id      string
	phase   store.Phase
	created store.Revision // revision of its record
	called  bool           // its machine may have been requested
	report  *store.Report  // the last stored one; nil: none
	record  store.Instance
}

// said returns the agent's report about certificates.
func (a agentSeen) said() (trust string, certificate *store.CertificateReport) {
	if a.report == nil {
		return "", nil
	}
	return a.report.Trust, a.report.Certificate
}

// newcomer reports whether its machine has not registered yet.
func (a agentSeen) newcomer() bool { return a.report == nil && !a.phase.Registered() }

// trustDigests returns the digests of every trust that these files have given to agents, depending
// on which of their authorities issued. Each of them includes all authorities in force.
func trustDigests(f pki.Files) map[string]bool {
	digests := map[string]bool{}
	t := f.Trust()
	for _, c := range t.Authorities {
		t.Issuer = pki.Signer{Certificate: c}.Fingerprint()
		digests[t.Digest()] = true
	}
	return digests
}
