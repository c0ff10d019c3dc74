package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/docs"
	"github.com/leasehold/leasehold/store"
)

// Explain is the command explain.
type Explain struct {
	Name string `arg:"" help:"ID of an instance, name of a group, or ID of a rule such as SAFE-2."`
}

// Run prints what happened to an instance or is going on in a group, why, and what blocks it. For
// what is gone the journal is the source.
func (c *Explain) Run(ctx context.Context, inv *Invocation) error {
	if p, known := docs.PromiseOf(c.Name); known && p.ID == c.Name {
		return inv.showPromise(p)
	}
	if !isName(c.Name) {
		return failure(NotFound, "leasehold instance list", "no instance, group or rule %q", c.Name)
	}
	for _, explain := range []func(context.Context, string) (found bool, err error){
		inv.explainGroup, inv.explainInstance, inv.explainGone,
	} {
		if found, err := explain(ctx, c.Name); found || err != nil {
			return err
		}
	}
	p, known := docs.PromiseOf(c.Name)
	if known && startedBy(c.Name, inv.names(ctx, store.KindInstances)) == "" { // web-1 is a slot of web, not WEB-1
		return inv.showPromise(p)
	}
	return inv.unexplained(ctx, c.Name)
}

// unexplained reports that nothing has this name, with a suggestion.
func (inv *Invocation) unexplained(ctx context.Context, name string) error {
	instances := inv.names(ctx, store.KindInstances)
	known := slices.Concat(instances, inv.names(ctx, store.KindGroups, store.KindStatic, store.KindStatus))
	for _, p := range docs.Promises() {
		known = append(known, p.ID)
	}
	what := fmt.Sprintf("no instance, group or rule %q, and nothing about it in the journal", name)
	near := startedBy(name, instances)
	if near == "" {
		near = suggest.Nearest(name, known)
	}
	if near != "" {
		return failure(NotFound, "leasehold explain "+near, "%s%s", what, meant(near))
	}
	return failure(NotFound, "leasehold instance list, leasehold group list", "%s", what)
}
