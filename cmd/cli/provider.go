package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// Providers are the commands about providers.
type Providers struct {
	List ProviderList `cmd:"" help:"List the providers of the running coordinators."`
	Show ProviderShow `cmd:"" help:"Show one provider: what it can do, and the schema of its settings."`
	Test ProviderTest `cmd:"" help:"Test that a provider keeps the contract, with machines made for the test."`
}

// ProviderList is the command provider list.
type ProviderList struct{}

// providerShown is a provider as the coordinators report it.
type providerShown struct {
	Name     string   `json:"name"`
	Replicas []string `json:"replicas"` // coordinators that have it
	store.ProviderCapabilities
	Settings map[string]any `json:"settings,omitempty"`
}

// Run lists the providers.
func (c *ProviderList) Run(ctx context.Context, inv *Invocation) error {
	all, err := inv.providers(ctx)
	if err != nil {
		return err
	}
	t := output.Table{Columns: []output.Column{
		{Title: "PROVIDER"}, {Title: "ZONES", Cut: true}, {Title: "CAN", Cut: true}, {Title: "REPLICAS", Cut: true},
	}}
	for _, p := range all {
		t.Add(p.Name, strings.Join(p.Zones, ", "), strings.Join(abilities(p.ProviderCapabilities), ", "),
			strings.Join(p.Replicas, ", "))
	}
	if done, err := inv.records(all); done {
		return err
	}
	if len(all) == 0 {
		inv.note("no coordinator runs, and only they know their providers: leasehold status")
		return nil
	}
	return t.Write(inv.screen(), inv.wide())
}

// providers returns the providers of the running coordinators.
func (inv *Invocation) providers(ctx context.Context) ([]providerShown, error) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindReplicas), 0)
	if err != nil {
		return nil, err
	}
	replicas, _ := decodeReadable[store.Replica](l)
	found := map[string]*providerShown{}
	for _, r := range replicas {
		for _, name := range r.Record.Providers {
			p := found[name]
			if p == nil {
				p = &providerShown{Name: name, ProviderCapabilities: r.Record.Capabilities[name]}
				p.Settings = p.ProviderCapabilities.Settings
				found[name] = p
			}
			p.Replicas = append(p.Replicas, r.Record.ID)
		}
	}
	all := []providerShown{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		all = append(all, *found[name])
	}
	return all, nil
}

// abilities returns what a provider can do beyond the minimum.
func abilities(c store.ProviderCapabilities) []string {
	var out []string
	for _, a := range []struct {
		name string
		has  bool
	}{
		{"distinguishes boots", c.Boots},
		{"reports crashes", c.Crashes},
		{"remembers deletions", c.Remembers},
		{"keeps consoles", c.Console},
	} {
		if a.has {
			out = append(out, a.name)
		}
	}
	return out
}

// ProviderShow is the command provider show.
type ProviderShow struct {
	Name string `arg:"" help:"Name of the provider."`
}

// Run shows the provider.
func (c *ProviderShow) Run(ctx context.Context, inv *Invocation) error {
	all, err := inv.providers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(p providerShown) bool { return p.Name == c.Name })
	if i < 0 {
		return failure(NotFound, "leasehold provider list", "no running coordinator has the provider %q", c.Name)
	}
	p := all[i]
	if done, err := inv.records(p); done {
		return err
	}
	most := "no limit"
	if p.MaxBootstrap > 0 {
		most = fmt.Sprintf("%d bytes", p.MaxBootstrap)
	}
	t := output.Table{Columns: []output.Column{{Title: "PROVIDER"}, {Title: p.Name}}}
	for _, line := range [][2]string{
		{"replicas", strings.Join(p.Replicas, ", ")},
		{"zones", strings.Join(p.Zones, ", ")},
		{"can", orDash(strings.Join(abilities(p.ProviderCapabilities), ", "))},
		{"its lists may be late by", p.Consistency.String()},
		{"a call may take", p.CallTimeout.String()},
		{"largest bootstrap document", most},
	} {
		t.Add(line[0], line[1])
	}
	if err := t.Write(inv.screen(), true); err != nil {
		return err
	}
	if len(p.Settings) == 0 {
		_, err := fmt.Fprintln(inv.env.Stdout, "\nNo schema of template.settings is known.")
		return err
	}
	if _, err := fmt.Fprintln(inv.env.Stdout, "\nSchema of template.settings:"); err != nil {
		return err
	}
	return output.YAML(inv.env.Stdout, p.Settings)
}
