package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/coordinator/story"
)

// PKIShow is the command pki show.
type PKIShow struct {
	PKIPlace `embed:""`
}

// Run shows the state of the certificates, and prints what it could not see.
func (c *PKIShow) Run(ctx context.Context, inv *Invocation) error {
	p, err := readPKI(c.Dir, inv.env.Now())
	if err != nil {
		return err
	}
	seen, err := inv.trustSeen(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		p.Unseen = append(p.Unseen, "replicas and agents: "+joined(err))
	default:
		p.takeWorkloads(seen)
		if p.agents != nil {
			p.take(seen)
		}
	}
	p.warn()
	if done, err := inv.records(p.pkiDocument); done {
		return err
	}
	return p.show(inv)
}

func (p *pkiState) show(inv *Invocation) error {
	scr := inv.screen()
	fmt.Fprintln(scr.W, p.Dir)
	t := output.Table{
		Indent: "  ",
		Columns: []output.Column{
			{Title: "AUTHORITY"},
			{Title: "STATE"},
			{Title: "PRINT"},
			{Title: "ENDS"},
			{Title: "KEY"},
			{Title: "NAME", Cut: true},
		},
	}
	for _, a := range p.Authorities {
		t.Add(string(a.Authority), a.State, shortPrint(a.Fingerprint), day(p.now, a.Ends), a.Key, a.Name)
	}
	if len(p.Authorities) > 0 {
		if err := t.Write(scr, inv.wide()); err != nil {
			return err
		}
	}
	if r := p.Rotation; r != nil {
		fmt.Fprintf(scr.W, "rotation: %s\n", r.words())
	}
	if err := p.showIssued(scr, inv.wide()); err != nil {
		return err
	}
	if err := p.showReplicas(scr, inv.wide()); err != nil {
		return err
	}
	if a := p.Agents; a != nil {
		fmt.Fprintln(scr.W, a.words(p.now))
	}
	if err := p.showWorkloads(scr, inv.wide()); err != nil {
		return err
	}
	if e := p.Soonest; e != nil {
		fmt.Fprintf(scr.W, "ends first: %s, %s%s\n", e.What, day(p.now, e.Ends), within(p.now, e.Ends))
	}
	for _, u := range p.Unseen {
		inv.note("not seen: %s", u)
	}
	for _, w := range p.Warnings {
		inv.warn("%s", w)
	}
	return nil
}

// within is story.Within.
func within(now, at time.Time) string { return story.Within(now, at) }

// words describes the progress of a rotation.
func (r *rotationState) words() string {
	var where string
	switch r.Stage {
	case pki.Introduced:
		where = "the next authority is introduced; when all trust it, leasehold pki rotate promotes it"
	case pki.Promoted:
		where = "the new authority issues; when no certificate of the old one is left, leasehold pki rotate removes that"
	default:
		return "none under way"
	}
	if r.Step == finish {
		where = "interrupted while the next authority was promoted: all trust both; leasehold pki rotate finishes it"
	}
	if r.Waits == nil {
		return where
	}
	if len(*r.Waits) == 0 {
		return where + ". It can now"
	}
	return where + ". It waits for " + fewOf(*r.Waits)
}

func (p *pkiState) showIssued(scr output.Screen, wide bool) error {
	if len(p.Issued) == 0 {
		return nil
	}
	t := output.Table{
		Indent: "  ",
		Columns: []output.Column{
			{Title: "ISSUED"},
			{Title: "ENDS"},
			{Title: "HOSTS", Cut: true},
			{Title: "FILES", Wide: true},
		},
	}
	for _, i := range p.Issued {
		t.Add(i.Name, day(p.now, i.Ends), orDash(strings.Join(i.Hosts, ",")), i.Certificate)
	}
	return t.Write(scr, wide)
}

func (p *pkiState) showReplicas(scr output.Screen, wide bool) error {
	if len(p.Replicas) == 0 {
		return nil
	}
	t := output.Table{
		Indent:  "  ",
		Columns: []output.Column{{Title: "REPLICA"}, {Title: "ISSUES WITH"}, {Title: "TRUSTS"}},
	}
	for _, r := range p.Replicas {
		trusts := "all of these"
		if !r.Believes {
			trusts = "others"
		}
		t.Add(r.ID, orDash(shortPrint(r.Issuer)), trusts)
	}
	return t.Write(scr, wide)
}

// showWorkloads shows the authorities for workloads' certificates, and which certificates instances
// have of them.
func (p *pkiState) showWorkloads(scr output.Screen, wide bool) error {
	if len(p.Workloads) > 0 {
		t := output.Table{
			Indent: "  ",
			Columns: []output.Column{
				{Title: "FOR WORKLOADS"},
				{Title: "ISSUER"},
				{Title: "ENDS"},
				{Title: "TRUST"},
				{Title: "REPLICAS"},
				{Title: "ISSUED"},
				{Title: "FIRST ENDS"},
				{Title: "NAME", Cut: true},
			},
		}
		for _, a := range p.Workloads {
			ends, first := "-", "-"
			if !a.Ends.IsZero() {
				ends = day(p.now, a.Ends)
			}
			if a.First != "" {
				first = day(p.now, a.FirstEnds) + within(p.now, a.FirstEnds)
			}
			t.Add(a.Authority, orDash(shortPrint(a.Issuer)), ends, fmt.Sprint(a.Trust), strings.Join(a.Replicas, ","),
				fmt.Sprint(a.Issued), first, orDash(cmp.Or(a.Name, a.Problem)))
		}
		if err := t.Write(scr, wide); err != nil {
			return err
		}
	}
	for _, u := range p.Unissued {
		var parts []string
		if n := len(u.Other); n > 0 {
			parts = append(parts, fmt.Sprintf("%d of another issuer or order, at %s", n, story.FewNames(u.Other)))
		}
		if n := len(u.Missing); n > 0 {
			parts = append(parts, fmt.Sprintf("%d missing, at %s", n, story.FewNames(u.Missing)))
		}
		fmt.Fprintf(scr.W, "certificates wanted of %s: %s\n", u.Authority, strings.Join(parts, "; "))
	}
	return nil
}

// words summarizes the agents.
func (a *agentsTrust) words(now time.Time) string {
	if a.Count == 0 {
		return "agents: none"
	}
	parts := []string{fmt.Sprintf("%d of %d trust all of these authorities", a.Believe, a.Count)}
	for _, h := range a.Holding {
		part := fmt.Sprintf("%d with a certificate of %s", h.Count, shortPrint(h.Issuer))
		if h.Issuer == "" {
			part = fmt.Sprintf("%d with an unknown certificate", h.Count)
		}
		if !h.FirstEnds.IsZero() {
			part += fmt.Sprintf(", the first ends %s (%s)", day(now, h.FirstEnds), h.First)
		}
		parts = append(parts, part)
	}
	return "agents: " + strings.Join(parts, "; ")
}

// shownFile returns a file's name below the directory of authorities.
func shownFile(dir, file string) string {
	if short, err := filepath.Rel(dir, file); err == nil {
		return short
	}
	return file
}
