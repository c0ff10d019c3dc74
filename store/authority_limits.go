package store

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// AuthorityLimits are what an authority for workloads' certificates may be asked for.
type AuthorityLimits struct {
	Domains     []string `json:"domains,omitempty"`  // host names: these and all below them
	Networks    []string `json:"networks,omitempty"` // in CIDR notation
	MaxLifetime Duration `json:"max_lifetime"`
}

// AuthorityState is an authority for workloads' certificates as a replica has it now.
type AuthorityState struct {
	// Issuer names the signer. When it changes, all certificates are issued again.
	Issuer string `json:"issuer,omitempty"`
	// Name, Begins and Ends are of the first trusted certificate: for an authority in files,
	// the signing certificate.
	Name   string    `json:"name,omitempty"`
	Begins time.Time `json:"begins,omitzero"`
	Ends   time.Time `json:"ends,omitzero"`
	Trust  int       `json:"trust,omitempty"` // certificates to trust
	// Problem is why none of that is known.
	Problem string `json:"problem,omitempty"`
}

// Forbids reports whether nothing that a template of a name can become is within the limits. Of a
// template that is filled in for each instance, what comes after the last value is known.
func (l AuthorityLimits) Forbids(name string) bool {
	at := strings.LastIndex(name, "}}")
	if a, err := netip.ParseAddr(name); err == nil {
		return !slices.ContainsFunc(l.Networks, func(text string) bool {
			p, err := netip.ParsePrefix(text)
			return err != nil || p.Contains(a)
		})
	}
	end := name
	if at >= 0 {
		end = name[at+len("}}"):]
	}
	last := end[strings.LastIndexByte(end, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return false // it may become an address, or anything
	}
	return !slices.ContainsFunc(l.Domains, func(d string) bool {
		return name == d || strings.HasSuffix(end, "."+d) || at >= 0 && strings.HasSuffix("."+d, end)
	})
}
