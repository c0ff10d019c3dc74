package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/coordinator/authority"
)

// PKIRotate is the command pki rotate.
type PKIRotate struct {
	PKIPlace `embed:""`

	Wait     bool     `help:"Take all steps, each as soon as it cuts nobody off."`
	Force    bool     `help:"Take the step although it cuts some off, or nobody knows whom: when a key was stolen."`
	Lifetime Lifetime `help:"How long the next authority lasts: 365d (default: 5 years)." placeholder:"DURATION"`
}

// Run takes the next step, or all.
func (c *PKIRotate) Run(ctx context.Context, s *Session) error {
	if c.Wait && c.Force {
		return failure(Usage, "leasehold pki rotate --force, once for each step", "--wait and --force: a forced step is taken alone")
	}
	if c.Wait {
		return c.all(ctx, s)
	}
	files, err := authority.Load(c.Dir, authority.Agents)
	if err != nil {
		return err
	}
	cut, err := c.look(ctx, s, files)
	switch {
	case err != nil && !c.Force:
		return err
	case err != nil:
		s.warn("nobody knows whom this cuts off: %s", joined(err))
	case len(cut) > 0 && !c.Force:
		s.tellCutOff(cut)
		return failure(Failed, "leasehold pki rotate --wait waits for them; --force cuts them off", "%s: %s", stepAfter(files), wouldCut(cut))
	case len(cut) > 0:
		s.tellCutOff(cut)
		s.warn("%s", wouldCut(cut))
	}
	if err := c.step(s, files); err != nil {
		return err
	}
	if files, err = authority.Load(c.Dir, authority.Agents); err != nil {
		return err
	}
	if stepAfter(files) != introduce {
		s.note("every coordinator's host must get these files, and lose those that are not here: rsync -a --delete %s/ HOST:…/pki/agents/", filepath.Join(c.Dir, string(authority.Agents)))
		program.WriteNext(s.aside(), "then leasehold pki rotate, which will "+string(stepAfter(files)))
	}
	return nil
}

// look asks whom the next step would cut off. The first needs nobody's word.
func (c *PKIRotate) look(ctx context.Context, s *Session, files authority.Files) ([]cutOff, error) {
	if step := stepAfter(files); step == introduce || step == finish {
		return nil, nil
	}
	seen, err := s.trustSeen(ctx)
	if err != nil {
		return nil, err
	}
	return cutOffBy(files, seen, s.env.Now()), nil
}

// step takes the next step, and says so.
func (c *PKIRotate) step(s *Session, files authority.Files) error {
	step, became := stepAfter(files), ""
	var err error
	switch step {
	case introduce:
		err, became = authority.Introduce(c.Dir, c.Lifetime.or(authority.AgentsLifetime)), "introduced: it is believed from now on, and issues nothing yet"
	case promote, finish:
		err, became = authority.Promote(c.Dir), "promoted: it issues from now on, and the one before is still believed"
	case retire:
		err, became = authority.Retire(c.Dir), "alone: the one before is believed no more"
	}
	if err != nil {
		return err
	}
	if files, err = authority.Load(c.Dir, authority.Agents); err != nil {
		return err
	}
	of := files.Issuer
	if files.Next != nil {
		of = *files.Next
	}
	fmt.Fprintf(s.env.Stdout, "%s %s\n", shortPrint(of.Fingerprint()), became)
	return nil
}

// all takes all steps that are left, the first included, and waits before each until it cuts nobody off.
func (c *PKIRotate) all(ctx context.Context, s *Session) error {
	limit := s.flags.Timeout
	if limit <= 0 {
		limit = waitTimeout
	}
	start := time.Now() // not the clock of records: what is waited for must end also where that stands
	line := progressLine{to: s.aside(), rewrite: s.env.StderrTerminal}
	defer line.clear()
	s.note("the files in %s must be the same on every coordinator's host after each step", c.Dir)
	for told := ""; ; {
		files, err := authority.Load(c.Dir, authority.Agents)
		if err != nil {
			return err
		}
		step := stepAfter(files)
		cut, err := c.look(ctx, s, files)
		text := fmt.Sprintf("%s waits for %s", step, fewOf(cut))
		if err != nil {
			text = fmt.Sprintf("%s waits: %s", step, joined(err))
		}
		if err == nil && len(cut) == 0 {
			line.clear()
			if err := c.step(s, files); err != nil {
				return err
			}
			if step == retire {
				s.note("%s after %s", s.aside().Good("done"), output.Span(time.Since(start)))
				return nil
			}
			told = ""
			continue
		}
		if told == "" {
			line.clear()
			s.note("%s", text)
			told = text
		}
		line.show(fmt.Sprintf("[%s | %s so far, gives up in %s]", text, output.Span(time.Since(start)), output.Span(limit-time.Since(start))))
		pause := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			pause.Stop()
			return failure(Interrupted, "leasehold pki rotate --wait goes on where this stopped", "stopped waiting: what was done stays, and harms nobody for however long")
		case <-pause.C:
		}
		if time.Since(start) > limit {
			line.clear()
			s.tellCutOff(cut)
			return failure(TimedOut, "leasehold pki show; leasehold pki rotate --wait goes on where this stopped", "gave up after %s: %s", output.Span(limit), text)
		}
	}
}

// mostCutOff is how many are named with their reason.
const mostCutOff = 20

// tellCutOff names those who would be cut off, and why.
func (s *Session) tellCutOff(cut []cutOff) {
	for i, c := range cut {
		if i == mostCutOff {
			s.note("  and %d more: leasehold pki show -o json names all", len(cut)-i)
			return
		}
		s.note("  %s %s", c.Who, c.Why)
	}
}

func wouldCut(cut []cutOff) string {
	return fmt.Sprintf("would cut off %s: %s", counted(len(cut), "replica or agent", "replicas and agents"), fewOf(cut))
}
