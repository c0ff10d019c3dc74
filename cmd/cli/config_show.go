package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// ConfigShow is the command config show.
type ConfigShow struct{}

// configDocument is the JSON form of config show.
type configDocument struct {
	Program []setting         `json:"program"`
	Shard   json.RawMessage   `json:"shard"`    // the record as stored
	InForce any               `json:"settings"` // settings of the shard, including unset ones
	Known   []shardSetting    `json:"known_settings"`
	Static  []json.RawMessage `json:"static"`
	Beside  []json.RawMessage `json:"overrides"` // overrides of static groups
}

// Run shows every value and its source.
func (c *ConfigShow) Run(ctx context.Context, inv *Invocation) error {
	shard, raw, err := findRecord[store.Shard](ctx, inv, inv.keys().Shard())
	if err != nil {
		return err
	}
	groups, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return !g.IsStatic() })
	doc := configDocument{
		Program: inv.settings, Shard: raw, InForce: shard.Record.Settings.WithDefaults(),
		Known: shardSettings(shard.Record.Settings), Static: []json.RawMessage{}, Beside: []json.RawMessage{},
	}
	for _, g := range groups {
		doc.Static = append(doc.Static, asJSON(g.Static.Value))
		if g.Stored.Modified != 0 {
			doc.Beside = append(doc.Beside, asJSON(g.Stored.Value))
		}
	}
	if done, err := inv.records(doc); done {
		return err
	}
	scr := inv.screen()
	fmt.Fprintln(scr.W, "this program")
	t := output.Table{Indent: "  ", Columns: []output.Column{
		{Title: "SETTING"}, {Title: "VALUE", Cut: true}, {Title: "FROM", Cut: true},
	}}
	for _, v := range inv.settings {
		t.Add(v.Name, orDash(v.Value), v.From)
	}
	if err := t.Write(scr, inv.wide()); err != nil {
		return err
	}
	if err := showShardSettings(scr, inv.flags.Shard, shard); err != nil {
		return err
	}
	return showStatic(scr, groups)
}

// showShardSettings shows the settings that apply to all groups of the shard.
func showShardSettings(scr output.Screen, name string, shard store.Versioned[store.Shard]) error {
	if shard.Present() {
		fmt.Fprintf(scr.W, "shard %s, revision %d\n", name, shard.Modified)
	} else {
		fmt.Fprintf(scr.W, "shard %s, which no coordinator has served yet\n", name)
	}
	t := output.Table{
		Indent: "  ",
		Columns: []output.Column{
			{Title: "SETTING"},
			{Title: "VALUE"},
			{Title: "FROM"},
			{Title: "DEFAULT", Spare: 1},
			{Title: "RANGE", Cut: true},
		},
	}
	for _, one := range shardSettings(shard.Record.Settings) {
		t.Add(one.Name, output.OneLine(one.Value), one.From, one.Default, one.Allowed)
	}
	return t.Write(scr, false)
}

// shardSetting is a setting of a shard for display.
type shardSetting struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // as stored, even if it is refused
	From    string `json:"from"`  // shard, default, or refused
	Default string `json:"default"`
	Allowed string `json:"allowed"`
	Rule    string `json:"rule,omitempty"`
	Doc     string `json:"doc"`
}

// shardSettings returns all settings of a shard, in their order.
func shardSettings(settings store.ShardSettings) []shardSetting {
	settings = settings.WithDefaults()
	var all []shardSetting
	for _, one := range store.Settings {
		s := shardSetting{
			Name: one.Name, Value: one.Value(settings), From: "shard", Default: one.Default(),
			Allowed: one.Allowed, Rule: one.Rule, Doc: one.Doc,
		}
		if s.Value == s.Default {
			s.From = "default"
		}
		for _, e := range settings.Refused {
			if e.Path == one.Name {
				s.Value, s.From = e.Value, "refused"
			}
		}
		all = append(all, s)
	}
	return all
}

// showStatic shows the static groups: for each the values that can be overridden, and whether they
// are.
func showStatic(scr output.Screen, groups []group) error {
	if len(groups) == 0 {
		_, err := fmt.Fprintln(scr.W, "no static groups")
		return err
	}
	fmt.Fprintln(scr.W, counted(len(groups), "static group", "static groups"))
	t := output.Table{
		Indent:  "  ",
		Columns: []output.Column{{Title: "GROUP"}, {Title: "FIELD"}, {Title: "VALUE"}, {Title: "FROM"}},
	}
	for _, g := range groups {
		static, beside := fmt.Sprintf("static rev %d", g.Static.Modified),
			fmt.Sprintf("override rev %d", g.Stored.Modified)
		if g.Bad != nil {
			t.Add(g.Name, "-", "cannot be used: "+joined(g.Bad), static)
			continue
		}
		var o store.Override
		if g.Stored.Modified != 0 {
			o, _ = store.ReadOverride(g.Stored.Value) // it has just been read
		}
		from := func(set bool) string {
			if set {
				return beside
			}
			return static
		}
		t.Add(g.Name, "provider", g.Spec.Provider, static)
		t.Add(g.Name, "size", fmt.Sprint(g.Spec.Size), from(o.Size != nil))
		t.Add(g.Name, "template.instance_type", orDash(strings.Join(g.Spec.Template.Types(), ", ")),
			from(o.Template.InstanceType != nil))
		for _, k := range slices.Sorted(maps.Keys(g.Spec.Vars)) {
			_, set := o.Vars[k]
			t.Add(g.Name, "vars."+k, g.Spec.Vars[k], from(set))
		}
	}
	return t.Write(scr, false)
}

// shownValue returns a flag's value as it is written on a command line, without passwords.
func shownValue(flag *kong.Flag, value any) string {
	text := fmt.Sprint(value)
	if list, ok := value.([]string); ok {
		text = strings.Join(list, ",")
	}
	switch {
	case flag.Name == "user" && text != "":
		name, _, _ := strings.Cut(text, ":")
		return name + ":…"
	case flag.Name == "timeout" && value == time.Duration(0):
		return fmt.Sprintf("%s, with --wait %s", output.Span(requestTimeout), output.Span(waitTimeout))
	default:
		return text
	}
}
