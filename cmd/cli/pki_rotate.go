package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// PKIRotate is the command pki rotate.
type PKIRotate struct {
	PKIPlace `embed:""`

	Wait     bool     `help:"Take all steps, waiting before each until it disconnects nothing."`
	Force    bool     `help:"Take the step even if it disconnects replicas or agents, known or unknown: for a stolen key."`
	Lifetime Lifetime `help:"Validity of the next authority, such as 365d (default: 5 years)." placeholder:"DURATION"`
}

// Run takes the next step, or all steps.
func (c *PKIRotate) Run(ctx context.Context, inv *Invocation) error {
	if c.Wait && c.Force {
		return failure(Usage, "leasehold pki rotate --force, once for each step",
			"--wait and --force cannot be combined: a forced step is taken alone")
	}
	if c.Wait {
		return c.all(ctx, inv)
	}
	files, err := pki.Load(c.Dir, pki.Agents)
	if err != nil {
		return err
	}
	cut, err := c.look(ctx, inv, files)
	switch {
	case err != nil && !c.Force:
		return err
	case err != nil:
		inv.warn("it is unknown which replicas and agents this disconnects: %s", joined(err))
	case len(cut) > 0 && !c.Force:
		inv.warnCutOff(cut)
		return failure(Failed, "leasehold pki rotate --wait waits for them; --force disconnects them", "%s: %s",
			stepAfter(files), wouldCut(cut))
	case len(cut) > 0:
		inv.warnCutOff(cut)
		inv.warn("%s", wouldCut(cut))
	}
	if err := c.step(inv, files); err != nil {
		return err
	}
	if files, err = pki.Load(c.Dir, pki.Agents); err != nil {
		return err
	}
	if stepAfter(files) != introduce {
		inv.note("every coordinator's host needs these files, and no others: rsync -a --delete %s/ HOST:…/pki/agents/",
			filepath.Join(c.Dir, string(pki.Agents)))
		program.WriteNext(inv.aside(), "then leasehold pki rotate, which will "+string(stepAfter(files)))
	}
	return nil
}

// look returns what the next step would disconnect. The first step disconnects nothing, so it needs
// no answer from etcd.
func (c *PKIRotate) look(ctx context.Context, inv *Invocation, files pki.Files) ([]cutOff, error) {
	if step := stepAfter(files); step == introduce || step == finish {
		return nil, nil
	}
	seen, err := inv.trustSeen(ctx)
	if err != nil {
		return nil, err
	}
	return cutOffBy(files, seen, inv.env.Now()), nil
}

// step takes the next step, and reports it.
func (c *PKIRotate) step(inv *Invocation, files pki.Files) error {
	step, became := stepAfter(files), ""
	var err error
	switch step {
	case introduce:
		err, became = pki.Introduce(c.Dir, c.Lifetime.or(pki.AgentsLifetime)),
			"introduced: it is trusted from now on, and does not issue yet"
	case promote, finish:
		err, became = pki.Promote(c.Dir), "promoted: it issues from now on, and the previous one is still trusted"
	case retire:
		err, became = pki.Retire(c.Dir), "alone: the previous one is no longer trusted"
	}
	if err != nil {
		return err
	}
	if files, err = pki.Load(c.Dir, pki.Agents); err != nil {
		return err
	}
	of := files.Issuer
	if files.Next != nil {
		of = *files.Next
	}
	fmt.Fprintf(inv.env.Stdout, "%s %s\n", shortPrint(of.Fingerprint()), became)
	return nil
}

// all takes all remaining steps, and waits before each until it disconnects nothing.
func (c *PKIRotate) all(ctx context.Context, inv *Invocation) error {
	limit := inv.flags.Timeout
	if limit <= 0 {
		limit = waitTimeout
	}
	start := time.Now() // not the clock of records: the wait must end even if that clock stands still
	line := progressLine{to: inv.aside(), rewrite: inv.env.StderrTerminal}
	defer line.clear()
	inv.note("the files in %s must be the same on every coordinator's host after each step", c.Dir)
	for noted := ""; ; {
		files, err := pki.Load(c.Dir, pki.Agents)
		if err != nil {
			return err
		}
		step := stepAfter(files)
		cut, err := c.look(ctx, inv, files)
		text := fmt.Sprintf("%s waits for %s", step, fewOf(cut))
		if err != nil {
			text = fmt.Sprintf("%s waits: %s", step, joined(err))
		}
		if err == nil && len(cut) == 0 {
			line.clear()
			if err := c.step(inv, files); err != nil {
				return err
			}
			if step == retire {
				inv.note("%s after %s", inv.aside().Good("done"), output.Span(time.Since(start)))
				return nil
			}
			noted = ""
			continue
		}
		if noted == "" {
			line.clear()
			inv.note("%s", text)
			noted = text
		}
		line.show(fmt.Sprintf("[%s | %s so far, gives up in %s]", text, output.Span(time.Since(start)),
			output.Span(limit-time.Since(start))))
		pause := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			pause.Stop()
			return failure(Interrupted, "leasehold pki rotate --wait continues where this stopped",
				"stopped waiting: the steps taken so far stay, which is safe for any length of time")
		case <-pause.C:
		}
		if time.Since(start) > limit {
			line.clear()
			inv.warnCutOff(cut)
			return failure(TimedOut, "leasehold pki show; leasehold pki rotate --wait continues where this stopped",
				"gave up after %s: %s", output.Span(limit), text)
		}
	}
}

// maxCutOff is how many replicas and agents are listed with their reason.
const maxCutOff = 20

// warnCutOff lists what a step would disconnect, and why.
func (inv *Invocation) warnCutOff(cut []cutOff) {
	for i, c := range cut {
		if i == maxCutOff {
			inv.note("  and %d more: leasehold pki show -o json names all", len(cut)-i)
			return
		}
		inv.note("  %s %s", c.Who, c.Why)
	}
}

func wouldCut(cut []cutOff) string {
	return fmt.Sprintf("this would disconnect %s: %s", counted(len(cut), "replica or agent", "replicas and agents"),
		fewOf(cut))
}
