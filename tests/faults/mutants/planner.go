package mutants

// ofThePlanner are mistakes in what is decided.
func ofThePlanner() []Mutant {
	return []Mutant{
		{
			Name: "evidence-not-compared",
			What: "The replacement of a lost machine does not compare its alive key any more: " +
				"an agent that came back meanwhile loses its machine all the same.",
			Rules: []string{"SAFE-4"},
			Edits: []Edit{{
				File: "coordinator/plan/heal.go",
				Old:  "	out := []store.Condition{store.At(keys.Alive(m.ID()), m.Alive.Modified)}\n",
				New:  "	var out []store.Condition\n",
			}},
			Likely: []string{"agents-return-as-judged"},
		},
		{
			Name: "record-removed-with-the-call",
			What: "The record of a removed machine goes as soon as the provider's Delete has returned: " +
				"no List has shown yet that the machine is gone.",
			Rules: []string{"SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/plan/remove.go",
				Old:  "	confirmed := !m.Calls.Deleted.IsZero() && see.Begun.After(m.Calls.Deleted) && !see.Listed\n",
				New:  "	confirmed := !m.Calls.Deleted.IsZero()\n",
			}},
			Likely: []string{"instance-ordered", "machine-crashes"},
		},
		{
			Name:  "late-create-forgotten",
			What:  "The record of a removed machine goes although an abandoned Create may still make one.",
			Rules: []string{"SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/plan/remove.go",
				Old:  "	if see.Begun.Before(m.Calls.AbsentFrom) {\n",
				New:  "	if m.Calls.Busy && see.Begun.Before(m.Calls.AbsentFrom) {\n",
			}},
			Likely: []string{"create-called-off"},
		},
		{
			Name:  "expansion-off-by-one",
			What:  "One replacement more is made at once than max_expansion allows.",
			Rules: []string{"HEAL-2"},
			Edits: []Edit{{
				File: "coordinator/plan/heal.go",
				Old:  "	if d.budget.expansion()-d.budget.finishing() < b.expansion && !limited {\n",
				New:  "	if d.budget.expansion()-d.budget.finishing() <= b.expansion && !limited {\n",
			}},
			Likely: []string{"group-sick"},
		},
		{
			Name:  "unavailable-off-by-one",
			What:  "One machine more is taken down at once than max_unavailable allows, by restarts and by removals.",
			Rules: []string{"HEAL-3"},
			Edits: []Edit{
				{
					File: "coordinator/plan/restart.go",
					Old:  "d.budget.unavailable() < d.spec.MaxUnavailableFor(d.spec.Budget.Heal, true)",
					New:  "d.budget.unavailable() <= d.spec.MaxUnavailableFor(d.spec.Budget.Heal, true)",
				},
				{
					File: "coordinator/plan/heal.go",
					Old:  "d.budget.unavailable() >= b.down\n",
					New:  "d.budget.unavailable() > b.down\n",
				},
			},
			Likely: []string{"group-sick"},
		},
		{
			Name: "relied-on-too-early",
			What: "A replacement is relied on as soon as its agent has registered, whatever its checks say: " +
				"the machine whose place it takes goes before anyone does its work.",
			Rules: []string{"HEAL-2"},
			Edits: []Edit{{
				File: "coordinator/plan/budget.go",
				Old:  "	if !m.healthy() {\n		return false\n",
				New:  "	if !m.phase.Registered() {\n		return false\n",
			}},
			Likely: []string{"group-edited", "instance-ordered"},
		},
		{
			Name: "turn-not-compared",
			What: "Changes that use a budget write the key of their turn and do not compare it: " +
				"one whose answer was lost happens late, beside another.",
			Rules: []string{"HEAL-2", "SAFE-4"},
			Edits: []Edit{{
				File: "coordinator/plan/budget.go",
				Old:  "conditions, writes = append(conditions, store.At(key, t.last[name])), append(writes, store.Put(key, turn))",
				New:  "writes = append(writes, store.Put(key, turn))",
			}},
			Harmless: "a transaction is given up after 5s, as long as a session lasts here: " +
				"what is later than that meets another fence",
			Likely: []string{"replica-cut-from-etcd", "group-sick"},
		},
		{
			Name:  "storm-window-inverted",
			What:  "The storm counts losses from before its window instead of those within it: it begins a minute late.",
			Rules: []string{"SAFE-2"},
			Edits: []Edit{{
				File: "coordinator/plan/storm.go",
				Old:  "(missed || m.silent()) && since.After(from) {\n",
				New:  "(missed || m.silent()) && since.Before(from) {\n",
			}},
			Likely: []string{"machines-all-cut", "zone-cut"},
		},
		{
			Name:  "pause-forgotten-by-calls",
			What:  "A paused group is not planned, but the provider is still asked for what was decided before.",
			Rules: []string{"REC-13"},
			Edits: []Edit{{
				File: "coordinator/plan/calls.go",
				Old:  "	if d.s.Shard.Record.Hold != nil || d.s.stale() || d.paused() {\n",
				New:  "	if d.s.Shard.Record.Hold != nil || d.s.stale() {\n",
			}},
			Likely: []string{"group-paused-amid-removals"},
		},
		{
			Name: "order-removed-apart",
			What: "The order to restart a machine is removed with the group's next status, " +
				"not in the transaction that carries it out: a leader in between restarts it twice.",
			Rules: []string{"REC-16"},
			Edits: []Edit{{
				File: "coordinator/plan/orders.go",
				Old: `	a.Facts = append(a.Facts, requested(r)...)
	a.Conditions = append(a.Conditions, r.Unchanged())
	a.Writes = append(a.Writes, store.Delete(r.Key))
`,
				New: `	a.Facts = append(a.Facts, requested(r)...)
	d.settled = append(d.settled, r)
`,
			}},
			Likely: []string{"instance-ordered"},
		},
		{
			Name:  "timers-start-over",
			What:  "A new leader gives every recorded timer its whole length again, instead of what remains of it.",
			Rules: []string{"SAFE-13", "FLAP-6"},
			Edits: []Edit{{
				File: "coordinator/evidence/timers.go",
				Old:  "	if !first {\n		return whole\n",
				New:  "	if first {\n		return whole\n",
			}},
			Scenario: "TestADrainEndsThoughLeadersChange",
		},
		{
			Name: "deadline-by-wall-clock",
			What: "The time that a new machine's agent has to register, and the end of every recorded " +
				"timer, are reckoned by the wall clock.",
			Rules: []string{"SAFE-13"},
			Edits: []Edit{
				{
					File: "coordinator/plan/judge.go",
					Old:  "	due := in.PhaseStart.Add(in.Record.Spec.RegistrationTimeout.D())\n",
					New:  "	due := in.Record.Since.Add(in.Record.Spec.RegistrationTimeout.D())\n",
				},
				{
					File: "coordinator/evidence/timers.go",
					Old: `			now := e.cfg.Now()
			r = running{timer: t.Timer, at: now.Add(e.left(t, now, first))}
`,
					New: `			r = running{timer: t.Timer, at: t.Timer.Start.Add(t.Timer.For.D())}
`,
				},
			},
			Likely: []string{"clock-jumps-as-machines-boot"},
		},
	}
}
