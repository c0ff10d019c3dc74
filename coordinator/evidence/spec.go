package evidence

import (
	"fmt"
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
	s.Problem = strings.ReplaceAll(s.Problem, "\n", "; ") // joined errors have a line each
	return s
}

// paused reports whether a group is paused: by its spec or, if that cannot be in force, by the last
// accepted one.
func (e *Evidence) paused(c *cache.Content, name string) bool {
	if s := e.spec(c, name); max(s.Modified, s.StaticModified) != 0 && s.Problem == "" {
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
