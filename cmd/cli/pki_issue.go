package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
)

// PKIIssue is the command pki issue.
type PKIIssue struct {
	PKIPlace `embed:""`

	Name     string   `arg:"" help:"Common name of the certificate: the etcd user."`
	Host     []string `help:"Host name or address, for a server certificate. May be repeated." placeholder:"HOST"`
	Lifetime Lifetime `help:"Validity, such as 90d or 12h (default: 365d)." placeholder:"DURATION"`
	Renew    bool     `help:"Replace an existing certificate, with a new key."`
}

// issuedCertificate is a certificate of the operators' authority, for JSON.
type issuedCertificate struct {
	Name        string    `json:"name"`
	Hosts       []string  `json:"hosts,omitempty"`
	Ends        time.Time `json:"ends"`
	Certificate string    `json:"certificate"`
	Key         string    `json:"key"`
}

// Run issues the certificate.
func (c *PKIIssue) Run(_ context.Context, inv *Invocation) error {
	issued, err := pki.IssueOperator(c.Dir,
		pki.Order{Name: c.Name, Hosts: c.Host, Lifetime: time.Duration(c.Lifetime), Renew: c.Renew})
	if err != nil {
		return err
	}
	if done, err := inv.records(issuedRecord(issued)); done {
		return err
	}
	what := "client"
	if issued.Server() {
		what = "client and server"
	}
	now, ends := inv.env.Now(), issued.Certificate.NotAfter
	fmt.Fprintf(inv.env.Stdout, "%s %s until %s: %s, %s\n", issued.Name(), what, day(now, ends), issued.File, issued.Key)
	if wanted := now.Add(c.Lifetime.or(pki.OperatorLifetime)); ends.Before(wanted.Add(-time.Hour)) {
		inv.warn("the authority itself expires then, so the certificate cannot last longer")
	}
	return nil
}

func issuedRecord(i pki.Issued) issuedCertificate {
	r := issuedCertificate{
		Name: i.Name(), Hosts: i.Certificate.DNSNames, Ends: i.Certificate.NotAfter,
		Certificate: i.File, Key: i.Key,
	}
	for _, ip := range i.Certificate.IPAddresses {
		r.Hosts = append(r.Hosts, ip.String())
	}
	return r
}
