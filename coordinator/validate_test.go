package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// asked is a provider that has to be asked about templates. A tag of the template says what it
// answers.
type asked struct {
	*fake.Provider

	mu  sync.Mutex
	did []string // it was asked about, by tag
}

func (p *asked) Capabilities() provider.Capabilities {
	c := p.Provider.Capabilities()
	c.Asks = true
	return c
}

func (p *asked) Ask(ctx context.Context, t provider.Template) error {
	tag := t.Tags["answer"]
	p.mu.Lock()
	p.did = append(p.did, tag)
	p.mu.Unlock()
	switch tag {
	case "never":
		<-ctx.Done()
		return ctx.Err()
	case "no":
		return &provider.Error{Kind: provider.Invalid, Message: "no such image"}
	case "broken":
		return errors.New("it does not answer")
	default:
		return nil
	}
}

func (p *asked) times(tag string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, did := range p.did {
		if did == tag {
			n++
		}
	}
	return n
}

func (p *asked) use(_ *coordinator.Config, deps *coordinator.Deps) {
	deps.Providers = map[string]provider.Provider{"mem": p}
}

// answered is a group whose template gets an answer.
func (w *world) answered(name, answer string) store.Group {
	g := w.group(name, 1)
	g.Template.Tags = map[string]string{"answer": answer}
	return g
}

// A provider that is asked about a spec and does not answer holds up no other group, nor the one
// that it is asked about: its last accepted spec is in force until it answers.
//
// proves SAFE-10, ELECT-2
func TestNothingWaitsForAProviderThatIsAskedAboutASpec(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		p := &asked{Provider: w.provider}
		one := w.start("one", p.use)
		w.apply(w.answered("web", "yes"))
		w.apply(w.answered("api", "yes"))
		w.until(time.Minute, "both groups work", func() bool { return w.status("web").OK && w.status("api").OK })

		accepted := w.status("web").AcceptedRevision
		hanging := w.answered("web", "never")
		hanging.Size = 2
		w.apply(hanging)
		w.until(time.Second, "the provider is asked", func() bool { return p.times("never") == 1 })
		for _, group := range []string{"api", "web"} {
			i := slices.IndexFunc(w.instances(), func(v store.Versioned[store.Instance]) bool { return v.Record.Group == group })
			dead := w.instances()[i].Record.ID
			w.provider.Crash(dead, "exit 1")
			w.until(10*time.Second, group+" is healed", func() bool {
				return !slices.Contains(w.ids(), dead) && w.status(group).OK
			})
		}
		if st := w.status("web"); st.AcceptedRevision != accepted || st.Invalid != nil || st.Accepted.Size != 1 {
			t.Errorf("while the provider is asked, the status is %+v", st)
		}
		w.until(5*time.Minute, "a spec without an answer is accepted in the end",
			func() bool { return w.status("web").Accepted.Size == 2 })

		// What was accepted is not asked about again: not by another leader, nor for an edit of the size.
		times := p.times("yes")
		one.stop()
		w.start("two", p.use)
		w.leads(time.Minute, "two")
		bigger := w.answered("api", "yes")
		bigger.Size = 2
		w.apply(bigger)
		w.until(time.Minute, "api is to have two", func() bool { return w.status("api").Accepted.Size == 2 })
		if p.times("never") != 1 || p.times("yes") != times {
			t.Errorf("asked about %q", p.did)
		}
	})
}

// What the provider answers counts: a refused spec is not in force, and the next edit is asked
// about even if it comes before the answer.
//
// proves SAFE-10
func TestAProvidersAnswerToASpec(t *testing.T) {
	inWorld(t, quick, func(w *world) {
		p := &asked{Provider: w.provider}
		w.start("one", p.use)
		rev := w.apply(w.answered("web", "no"))
		w.until(time.Minute, "the first spec is refused", func() bool {
			st := w.status("web")
			return st.Invalid != nil && st.Invalid.Revision == rev && strings.Contains(st.Invalid.Why, "no such image")
		})
		if w.made() != 0 {
			t.Errorf("%d machines were made of it", w.made())
		}
		w.apply(w.answered("web", "broken"))
		w.until(time.Minute, "what got no answer is in force", func() bool { return w.status("web").OK })
		ids := w.ids()

		w.apply(w.answered("web", "never"))
		w.until(time.Second, "the provider is asked", func() bool { return p.times("never") == 1 })
		rev = w.apply(w.answered("web", "no"))
		w.until(5*time.Minute, "the edit after it is refused", func() bool {
			st := w.status("web")
			return st.Invalid != nil && st.Invalid.Revision == rev
		})
		w.unchanged(ids)
		rev = w.apply(w.answered("web", "yes"))
		w.until(5*time.Minute, "the last edit is in force", func() bool {
			return w.status("web").OK && w.status("web").AcceptedRevision == rev
		})
	})
}
