package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// WorkloadAuthority is an authority for workloads' certificates as replicas have it, and the
// instances' certificates that name it.
type WorkloadAuthority struct {
	Authority string    `json:"authority"`
	Issuer    string    `json:"issuer,omitempty"` // if it changes, all certificates are issued again
	Name      string    `json:"name,omitempty"`   // of the first certificate to trust, as are the times
	Begins    time.Time `json:"begins,omitzero"`
	Ends      time.Time `json:"ends,omitzero"`
	Trust     int       `json:"trust"` // number of certificates to trust
	Problem   string    `json:"problem,omitempty"`
	Replicas  []string  `json:"replicas"` // replicas that have this one

	Issued int `json:"issued"` // number of instances' certificates
	// The first of them to expire, and its instance.
	First     string    `json:"first,omitempty"`
	FirstEnds time.Time `json:"first_ends,omitzero"`
}

// UnissuedCertificates counts wanted certificates of an authority that instances do not have from
// it in the form that any replica has it.
type UnissuedCertificates struct {
	Authority string   `json:"authority"`
	Other     []string `json:"other"`   // instances with an outdated certificate
	Missing   []string `json:"missing"` // instances without one
}

// WorkloadAuthorities returns the replicas' authorities by name and issuer, and how many
// certificates of each instances have. reports are the last ones, by instance.
func WorkloadAuthorities(replicas []store.Replica, instances []store.Instance, reports map[string]*store.Report) (
	all []WorkloadAuthority, unissued []UnissuedCertificates,
) {
	for _, r := range replicas {
		for _, name := range slices.Sorted(maps.Keys(r.AuthorityStates)) {
			st := r.AuthorityStates[name]
			i := slices.IndexFunc(all, func(a WorkloadAuthority) bool {
				return a.Authority == name && a.Issuer == st.Issuer && a.Trust == st.Trust && a.Problem == st.Problem
			})
			if i < 0 {
				i = len(all)
				all = append(all, WorkloadAuthority{
					Authority: name, Issuer: st.Issuer, Name: st.Name, Begins: st.Begins, Ends: st.Ends, Trust: st.Trust,
					Problem: st.Problem,
				})
			}
			all[i].Replicas = append(all[i].Replicas, r.ID)
		}
	}
	slices.SortFunc(all, func(a, b WorkloadAuthority) int {
		return strings.Compare(a.Authority+" "+a.Issuer, b.Authority+" "+b.Issuer)
	})
	rest := map[string]*UnissuedCertificates{}
	for i := range instances {
		rec := &instances[i]
		for f := range rec.Spec.Files {
			if c := rec.Spec.Files[f].Certificate; c != nil {
				countCertificate(all, rest, rec, &rec.Spec.Files[f], reports[rec.ID])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		unissued = append(unissued, *rest[name])
	}
	return all, unissued
}

func countCertificate(all []WorkloadAuthority, rest map[string]*UnissuedCertificates, rec *store.Instance,
	f *store.File, report *store.Report,
) {
	c := f.Certificate
	of := func() *UnissuedCertificates {
		if rest[c.Authority] == nil {
			rest[c.Authority] = &UnissuedCertificates{Authority: c.Authority, Other: []string{}, Missing: []string{}}
		}
		return rest[c.Authority]
	}
	var has store.FileReport
	if report != nil {
		if i := slices.IndexFunc(report.Files, func(r store.FileReport) bool { return r.Path == f.Path }); i >= 0 {
			has = report.Files[i]
		}
	}
	if has.Ends.IsZero() {
		of().Missing = append(of().Missing, rec.ID)
		return
	}
	counted := false
	for i := range all {
		a := &all[i]
		if counted || a.Authority != c.Authority {
			continue
		}
		if version, err := c.VersionFor(rec, a.Issuer); err != nil || has.Version != version {
			continue
		}
		a.Issued++
		counted = true
		if a.FirstEnds.IsZero() || has.Ends.Before(a.FirstEnds) {
			a.First, a.FirstEnds = rec.ID, has.Ends
		}
	}
	if !counted {
		of().Other = append(of().Other, rec.ID)
	}
}

// AuthorityProblems reports authorities for workloads' certificates that expire soon, that a
// replica does not know, or that differ between replicas.
func AuthorityProblems(replicas []store.Replica, now time.Time) []Problem {
	all, _ := WorkloadAuthorities(replicas, nil, nil)
	var found []Problem
	for i, a := range all {
		who := strings.Join(a.Replicas, ", ")
		add := func(what string, remedies Remedies) {
			found = append(found, Problem{About: a.Replicas[0], Rule: "FILE-2", What: what, Remedies: remedies})
		}
		switch {
		case a.Problem != "":
			add(fmt.Sprintf("authority %s for workloads' certificates is not known to %s: %s: nothing is certified there",
				a.Authority, who, a.Problem), Advise("see what the coordinator's log says of it"))
			continue
		case !a.Ends.IsZero() && a.Ends.Sub(now) < min(issuerNear, a.Ends.Sub(a.Begins)/5):
			verb := "ends"
			if !now.Before(a.Ends) {
				verb = "has ended"
			}
			add(fmt.Sprintf("authority %s for workloads' certificates %s on %s%s, and every certificate of it then", a.Authority,
				verb, Day(now, a.Ends), Within(now, a.Ends)), Advise("exchange it: docs/authorities.md"))
		}
		if i > 0 && all[i-1].Authority == a.Authority && all[i-1].Problem == "" {
			what := "has other certificates to trust at %s than at %s: bundles change when an agent goes from one to the other"
			if a.Issuer != all[i-1].Issuer {
				what = "is another one at %s than at %s: certificates are issued again when an agent goes from one to the other"
			}
			add(fmt.Sprintf("authority %s for workloads' certificates "+what, a.Authority, who,
				strings.Join(all[i-1].Replicas, ", ")), Advise("give all coordinators the same files: leasehold pki show"))
		}
	}
	return found
}
