package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// happens is a command that changes the world: what an operator does, or what happens to the shard.
func (s *story) happens(word []string) {
	switch word[0] {
	case "group", "static", "override":
		s.editSpec(word[0], word[1:])
	case "in":
		s.group = word[1]
	case "order":
		s.order(word[1:])
	case "evacuate", "reopen":
		kind := map[string]store.RequestKind{"evacuate": store.RequestEvacuate, "reopen": store.RequestReturn}[word[0]]
		s.request(store.Request{Kind: kind, Zone: word[1]})
	case "leader":
		if len(word) > 1 {
			s.now = s.now.Add(duration(s.t, word[1])) // without a leader
		}
		s.leaderChange()
	case "outage":
		s.outage()
	case "hold", "release":
		s.editShard(func(sh *store.Shard) {
			sh.Release(s.now)
			if word[0] == "hold" {
				sh.Hold = &store.Hold{By: "ada", Why: "maintenance", At: s.now}
			}
		})
	case "shard":
		s.editShard(func(sh *store.Shard) { sh.Settings.EligibleAge = store.Duration(duration(s.t, word[1])) })
	case "limit":
		s.editShard(func(sh *store.Shard) {
			name, value, _ := strings.Cut(word[1], "=")
			if err := sh.Settings.Set(name, value); err != nil {
				s.t.Fatalf("%v", err)
			}
		})
	case "spoil":
		s.edit(func(g *store.Group) { g.Lifecycle = "nonsense" })
	case "vanish":
		s.drop(s.keys.Group(s.group))
	case "full", "room":
		s.noRoom[word[1]] = word[0] == "full"
	case "stale", "fresh":
		s.stale = map[string]string{"stale": "the watch is behind"}[word[0]]
	case "unmakable":
		s.unmakable = word[1]
	case "sick":
		s.sick = word[1]
	case "crashes", "lasts":
		s.crashes = word[0] == "crashes"
	case "wrong":
		s.wrong = word[1]
	case "dumb":
		s.dumb = true
	case "load":
		s.load = map[string]float64{}
		for _, part := range word[1:] {
			name, value, _ := strings.Cut(part, "=")
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.t.Fatalf("%s: %v", part, err)
			}
			s.load[name] = x
		}
	case "hook":
		s.hookFor = 0
		if word[1] != "never" {
			s.hookFor = duration(s.t, word[1])
		}
	case "extra":
		s.machines[word[1]] = &machine{id: word[1], group: word[2], zone: word[3], made: s.now}
		s.agents[word[1]] = &agent{healthy: true, registersAt: s.now}
		if len(word) == 4 { // else the reason for the missing record is unknown
			s.put(s.keys.Gone(s.keys.Instance(word[1])),
				store.Gone{Schema: store.Schema, Instance: word[1], Group: word[2], At: s.now})
		}
	case "stray":
		s.put(s.keys.Stray(word[1]), store.Stray{Schema: store.Schema, Instance: word[1], Replica: "r1", At: s.now})
	default:
		s.strike(word[0], word[1:])
	}
}

// strike is what happens to instances.
func (s *story) strike(what string, words []string) {
	detail := ""
	if what == "goodbye" || what == "notice" || what == "exit" {
		detail, words = words[0], words[1:]
	}
	if slices.Equal(words, []string{"all"}) {
		words = nil
		for _, v := range s.instances() {
			if v.Record.Group == s.group {
				words = append(words, s.names[v.Record.ID])
			}
		}
	}
	for _, name := range words {
		s.strikeOne(what, detail, s.id(name))
	}
}

func (s *story) strikeOne(what, detail, id string) {
	switch what {
	case "kill":
		s.kill(id)
	case "crash":
		s.silence(id, false)
		s.machines[id].down, s.machines[id].upAt = true, time.Time{}
	case "cut-off", "freeze":
		s.silence(id, what == "cut-off")
	case "return":
		s.comeBack(id)
	case "reboot":
		s.reboot(id)
	case "healthy", "unhealthy":
		s.turn(id, what == "healthy")
	case "broken":
		s.agents[id].ails = "machine"
		s.turn(id, false)
	case "lose":
		s.silence(id, true)
		delete(s.machines, id)
	case "hide", "unhide":
		s.hidden[id] = what == "hide"
	case "loadless", "loaded":
		s.agents[id].loadless = what == "loadless"
	case "refuses":
		s.agents[id].refuses = true
	case "goodbye":
		s.leave(id, store.Goodbye(detail))
	case "notice":
		in := time.Duration(0)
		if detail != store.NoticeEvacuating && detail != "untimed" {
			in = duration(s.t, detail)
		}
		s.notice(id, detail, in)
	case "exit":
		code, err := strconv.Atoi(detail)
		if err != nil {
			s.t.Fatalf("%v", err)
		}
		s.exit(id, code)
	default:
		s.t.Fatalf("there is no command %q", what)
	}
}

func (s *story) id(name string) string {
	id, ok := s.ids[name]
	if !ok {
		s.t.Fatalf("there is no %s; there are %v", name, s.ids)
	}
	return id
}

// order is an operator's order: KIND [ID] [MODE], for the whole group where no ID is given.
func (s *story) order(word []string) {
	r := store.Request{Kind: store.RequestKind(word[0]), Group: s.group}
	if len(word) > 1 {
		r.Group, r.Instance = "", word[1]
		if id, ok := s.ids[word[1]]; ok {
			r.Instance = id
		}
	}
	if len(word) > 2 {
		r.Mode = word[2]
	}
	s.request(r)
}

func (s *story) request(r store.Request) {
	r.Schema, r.ID, r.By, r.At = store.Schema, fmt.Sprintf("r%04d", s.rev), "ada", s.now
	s.put(s.keys.Request(r.ID), r)
}

// editSpec changes groups/<name>, static/<name>, or the override beside it.
func (s *story) editSpec(what string, settings []string) {
	change := func(g *store.Group) {
		for _, setting := range settings {
			s.set(g, setting)
		}
	}
	switch what {
	case "group":
		s.edit(change)
	case "static":
		g := read[store.Group](s.world, s.keys.Static(s.group)).Record
		if g.Schema == 0 {
			g = store.DefaultGroup()
			g.Name, g.Provider, g.Flap.Noise = s.group, cloud, 0
			g.Complete()
		}
		change(&g)
		s.put(s.keys.Static(s.group), g)
	case "override":
		o := map[string]any{"schema": store.Schema, "name": s.group}
		for _, setting := range settings {
			key, value, _ := strings.Cut(setting, "=")
			if n, err := strconv.Atoi(value); err == nil {
				o[key] = n
			} else {
				o[key] = value
			}
		}
		s.put(s.keys.Group(s.group), o)
	}
}

// set changes one field of a spec.
func (s *story) set(g *store.Group, setting string) {
	key, value, _ := strings.Cut(setting, "=")
	number := func() int {
		n, err := strconv.Atoi(value)
		if err != nil {
			s.t.Fatalf("%s: %v", setting, err)
		}
		return n
	}
	numbers := map[string]*int{
		"size": &g.Size, "max_creating": &g.Budget.MaxCreating,
		"max_deleting":  &g.Budget.MaxDeleting,
		"give_up_after": &g.Flap.GiveUpAfter, "storm_min": &g.Storm.Min, "storm_percent": &g.Storm.Percent,
	}
	times := map[string]*store.Duration{
		"max_checking": &g.MaxChecking, "registration_timeout": &g.RegistrationTimeout,
		"startup_duration":  &g.Rollout.StartupDuration,
		"progress_deadline": &g.Rollout.ProgressDeadline, "drain_timeout": &g.Drain.Timeout,
		"stop_timeout": &g.StopTimeout, "give_up_time": &g.Flap.GiveUpTime,
		"noise": &g.Flap.Noise, "on_demand_age": &g.OnDemandAge, "max_lifetime": &g.Spot.MaxLifetime,
		"probe_after": &g.Storm.ProbeAfter, "reset": &g.Flap.Reset,
	}
	words := map[string]*string{
		"policy": &g.Heal.Policy, "type": &g.Template.InstanceType, "strategy": &g.Rollout.Strategy,
		"minimal_action": &g.Rollout.MinimalAction,
		"lifecycle":      &g.Lifecycle, "spread": (*string)(&g.Spread), "on_lease_lost": &g.Report.OnLeaseLost.Do,
	}
	flags := map[string]*bool{
		"paused": &g.Paused, "deleting": &g.Deleting, "stopped": &g.Stopped,
		"unstarted": &g.Unstarted, "spot": &g.Spot.Enabled,
	}
	switch {
	case numbers[key] != nil:
		*numbers[key] = number()
	case times[key] != nil:
		*times[key] = store.Duration(duration(s.t, value))
	case words[key] != nil:
		*words[key] = value
	case flags[key] != nil:
		*flags[key] = value == "true"
	default:
		s.setOther(g, key, value)
	}
}

func (s *story) setOther(g *store.Group, key, value string) {
	age := func() *store.Duration { return new(store.Duration(duration(s.t, value))) }
	amount := func() *store.Amount {
		var a store.Amount
		if err := a.UnmarshalText([]byte(value)); err != nil {
			s.t.Fatalf("%s: %v", key, err)
		}
		return &a
	}
	switch key {
	case "max_expansion":
		g.Budget.MaxExpansion = *amount()
	case "max_unavailable":
		g.Budget.MaxUnavailable = amount()
	case "heal.max_expansion":
		g.Budget.Heal.MaxExpansion = amount()
	case "heal.max_unavailable":
		g.Budget.Heal.MaxUnavailable = amount()
	case "roll.max_expansion":
		g.Budget.Roll.MaxExpansion = amount()
	case "roll.max_unavailable":
		g.Budget.Roll.MaxUnavailable = amount()
	case "expiry.max_expansion":
		g.Budget.Expiry.MaxExpansion = amount()
	case "max_unhealthy":
		g.Heal.MaxUnhealthy = amount()
	case "canary":
		g.Rollout.Canary = *amount()
	case "canary_duration":
		g.Rollout.CanaryDuration = age()
	case "bake":
		g.Rollout.Bake = *age()
	case "order":
		g.Rollout.Order = value
	case "auto_rollback":
		g.Rollout.AutoRollback = value == "true"
	case "scale":
		s.setScale(g, value)
	case "scale_hold":
		if g.ScaleHold = nil; value != "" {
			size, until, timed := strings.Cut(value, ",")
			n, err := strconv.Atoi(size)
			if err != nil {
				s.t.Fatalf("%s: %v", value, err)
			}
			g.ScaleHold = &store.ScaleHold{Size: n, By: "ada", At: s.now}
			if timed {
				g.ScaleHold.Until = s.now.Add(duration(s.t, until))
			}
		}
	case "zones":
		g.Template.Zones = strings.Split(value, ",")
	case "run":
		g.Workload.Run = strings.Split(value, ",")
	case "hook":
		g.Drain.Hook = strings.Split(value, ",")
	case "check":
		c := store.DefaultCheck()
		c.Name, c.TCP = value, &store.TCPCheck{Port: "8080"}
		g.Checks = []store.Check{c}
	case "greeting":
		g.Vars = map[string]string{"greeting": value}
	case "eligible_age":
		g.Expiry.EligibleAge = age()
	case "forced_age":
		g.Expiry.ForcedAge = age()
	case "relaunch":
		g.Relaunch = store.Relaunch{Number: g.Relaunch.Number + 1, Action: value}
	default:
		s.t.Fatalf("there is no setting %q", key)
	}
}

// setScale sets how the size follows the load: min:1,max:5,cpu:60 and so on.
func (s *story) setScale(g *store.Group, value string) {
	g.Scale = nil
	if value == "" {
		return
	}
	spec := store.ScaleSpec{}
	for part := range strings.SplitSeq(value, ",") {
		key, value, _ := strings.Cut(part, ":")
		n, _ := strconv.ParseFloat(value, 64)
		var amount store.Amount
		_ = amount.UnmarshalText([]byte(value))
		switch key {
		case "min":
			spec.Min = new(int(n))
		case "max":
			spec.Max = int(n)
		case "warmup":
			spec.Warmup = new(store.Duration(duration(s.t, value)))
		case "up.window":
			spec.Up.Window = store.Duration(duration(s.t, value))
		case "up.every":
			spec.Up.Every = store.Duration(duration(s.t, value))
		case "up.step":
			spec.Up.Step = amount
		case "down.window":
			spec.Down.Window = new(store.Duration(duration(s.t, value)))
		case "down.every":
			spec.Down.Every = store.Duration(duration(s.t, value))
		case "down.step":
			spec.Down.Step = amount
		case "mode":
			spec.Mode = value
		default:
			spec.Targets = append(spec.Targets, store.ScaleTarget{Metric: key, Value: n})
		}
	}
	spec = spec.Complete()
	g.Scale = &spec
}
