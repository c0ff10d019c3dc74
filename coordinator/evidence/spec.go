package evidence

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/store"
)

// spec returns the wanted state of a group. It is read once for each revision of its keys.
func (e *Evidence) spec(c *cache.Content, name string) plan.Spec {
	dynamic, static := c.Groups[name], c.Static[name]
	if dynamic.Modified == 0 && static.Modified == 0 {
		delete(e.specs, name)
		return plan.Spec{Key: e.cfg.Keys.Group(name), Static: e.cfg.Keys.Static(name)}
	}
	s, known := e.specs[name]
	if !known || s.Modified != dynamic.Modified || s.StaticModified != static.Modified {
		s = e.readSpec(name, dynamic, static)
		s.Pending = s.Problem == "" && e.mustAsk(&s.Group, c.Status[name].Record.Accepted)
		e.specs[name] = s
	}
	if status := c.Status[name].Record; static.Modified != 0 && s.Problem == "" {
		if lost := status.LostBeside(s.Group, dynamic.Modified); lost != nil {
			s.Problem = lost.Missing(*status.Accepted)
		}
	}
	return s
}

// readSpec reads static/<name> and groups/<name>, and returns what keeps them from being in force
// (SAFE-10).
func (e *Evidence) readSpec(name string, dynamic, static store.KV) plan.Spec {
	s := plan.Spec{
		Key: e.cfg.Keys.Group(name), Modified: dynamic.Modified, Static: e.cfg.Keys.Static(name),
		StaticModified: static.Modified,
	}
	group, err := store.ReadInForce(valueOf(static), valueOf(dynamic))
	s.Group = group
	if err == nil {
		s.Template = group.InstanceSpec().TemplateHash()
	}
	if err == nil && static.Modified != 0 && dynamic.Modified != 0 {
		o, _ := store.ReadOverride(dynamic.Value) // it was read a moment ago
		s.Beside = &store.Beside{Revision: dynamic.Modified, Override: o}
	}
	switch {
	case err != nil:
		s.Problem = err.Error()
	case group.Name != name:
		s.Problem = fmt.Sprintf("its name is %q, its key says %q", group.Name, name)
	case group.Deleting: // no machine is created from it any more: the provider's opinion is irrelevant (REC-7)
	default:
		s.Problem = e.cfg.Validate(name, group)
	}
	s.Problem = oneLine(s.Problem)
	return s
}

// oneLine returns a problem in one line: joined errors have a line each.
func oneLine(problem string) string { return strings.ReplaceAll(problem, "\n", "; ") }

// mustAsk reports whether a group's provider must be asked about a spec. It has accepted the
// provider's part of the spec that is in force, so a new leader does not ask again.
func (e *Evidence) mustAsk(g, accepted *store.Group) bool {
	return e.cfg.Capabilities[g.Provider].Asks && !g.Deleting && (accepted == nil || accepted.Provider != g.Provider ||
		accepted.InstanceSpec().Spot != g.InstanceSpec().Spot || !reflect.DeepEqual(accepted.Template, g.Template))
}

// Validated records why a provider refuses a group's spec, "" if it does not. The spec is as it was
// when the provider was asked.
func (e *Evidence) Validated(group string, asked plan.Spec, problem string) {
	defer e.cfg.Wake()
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.specs[group]; s.Pending && s.Modified == asked.Modified && s.StaticModified == asked.StaticModified &&
		s.Template == asked.Template {
		s.Pending, s.Problem = false, oneLine(problem)
		e.specs[group] = s
	}
	e.dirty[group] = true // after another edit, the next plan asks about that
}

// paused reports whether a group is paused: by its spec or, if that cannot be in force, by the last
// accepted one.
func (e *Evidence) paused(c *cache.Content, name string) bool {
	if s := e.spec(c, name); s.InForce() {
		return s.Group.Paused
	}
	accepted := c.Status[name].Record.Accepted
	return accepted != nil && accepted.Paused
}

// valueOf returns the value of a key; nil only if there is no such key.
func valueOf(kv store.KV) []byte {
	if kv.Modified != 0 && kv.Value == nil {
		return []byte{}
	}
	return kv.Value
}
