package mutants

// ofTheLeader are mistakes in what a leader writes and asks of providers.
func ofTheLeader() []Mutant {
	return []Mutant{
		{
			Name:  "no-fence",
			What:  "A leader's transactions do not compare the fence: one who was deposed while it stood still goes on writing.",
			Rules: []string{"SAFE-7"},
			Edits: []Edit{{
				File: "coordinator/leader/txn.go",
				Old:  "	all := []store.Condition{fence.Condition()}\n",
				New:  "	var all []store.Condition\n",
			}},
			Likely: []string{"replica-cut-from-etcd", "replica-frozen", "machine-crashes"},
		},
		{
			Name: "call-before-record",
			What: "The provider is asked to create before the record says so: the next leader does not " +
				"know that there may be a machine.",
			Rules: []string{"SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/perform.go",
				Old: `	rev, err := t.commit(ctx, c.Conditions, append(token.writes(), c.Writes...), c.Entries...)
`,
				New: `	if creates {
		_, _ = t.r.deps.Providers[c.Instance.Spec.Provider].Create(ctx, t.request(c.Instance, token))
		t.r.deps.Before("provider created", id)
	}
	rev, err := t.commit(ctx, c.Conditions, append(token.writes(), c.Writes...), c.Entries...)
`,
			}},
		},
		{
			Name: "renamed-on-retry",
			What: "A Create that is tried again asks for a machine of another name: if the answer to the " +
				"first was lost, there are two.",
			Rules: []string{"SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/perform.go",
				Old:  "	m, err := p.Create(call, t.request(c.Instance, token))\n",
				New: `	request := t.request(c.Instance, token)
	if c.Instance.Last.Why != "provider "+c.Instance.Spec.Provider+" is asked" {
		request.Bootstrap.Instance += "-again" // the first name may be taken
	}
	m, err := p.Create(call, request)
`,
			}},
			Likely: []string{"create-called-off"},
		},
		{
			Name: "calls-overlap",
			What: "That a call is under way is not remembered: each plan made meanwhile asks the provider " +
				"once more for the same instance.",
			Rules: []string{"SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/evidence/calls.go",
				Old:  "	w.calls.Busy = true\n",
				New:  "",
			}},
			Likely: []string{"calls-slow", "machine-crashes", "group-scaled"},
		},
		{
			Name:  "journal-apart",
			What:  "Entries of the journal are written after the change that they explain, in a transaction of their own.",
			Rules: []string{"REC-15"},
			Edits: []Edit{{
				File: "coordinator/journal.go",
				Old: `	txn.Writes = slices.Clone(txn.Writes)
	for _, entry := range entries {
		w, err := j.entry(ctx, entry)
		if err != nil {
			return 0, fmt.Errorf("write journal: %w", err)
		}
		txn.Writes = append(txn.Writes, w)
	}
	rev, err := j.r.deps.Store.Commit(ctx, txn)
`,
				New: `	var rev store.Revision
	if txn.Writes = slices.Clone(txn.Writes); len(txn.Writes) > 0 {
		done, err := j.r.deps.Store.Commit(ctx, txn)
		if err != nil || len(entries) == 0 {
			return done, err
		}
		rev, txn = done, store.Txn{}
	}
	for _, entry := range entries {
		w, err := j.entry(ctx, entry)
		if err != nil {
			return 0, fmt.Errorf("write journal: %w", err)
		}
		txn.Writes = append(txn.Writes, w)
	}
	told, err := j.r.deps.Store.Commit(ctx, txn)
	rev = max(rev, told)
`,
			}},
		},
		{
			Name:  "lease-for-each-entry",
			What:  "The lease of an hour's journal is not kept: each entry is granted one of its own, which lasts a week.",
			Rules: []string{"REC-15"},
			Edits: []Edit{{
				File: "coordinator/journal.go",
				Old:  "	j.lease, j.until = lease, time.Now().Add(j.share())\n",
				New:  "	j.lease = lease\n",
			}},
			Likely: []string{"machine-crashes", "instance-ordered"},
		},
		{
			Name: "failed-list-believed",
			What: "A List that fails is told in the log and then taken up as one that shows nothing, " +
				"or what came before the error.",
			Rules: []string{"DET-4", "SAFE-8"},
			Edits: []Edit{{
				File: "coordinator/leader/leader.go",
				Old:  "		if e.Err == nil { // a failed List proves nothing\n",
				New:  "		if true {\n",
			}},
			Likely: []string{"list-fails-beside-machines"},
		},
		{
			Name: "restore-unnoticed",
			What: "That etcd was restored is told by its cluster's ID alone, not by a revision that went " +
				"backwards: old records are acted on.",
			Rules: []string{"SAFE-12"},
			Edits: []Edit{
				{
					File: "coordinator/known.go",
					Old: `	case v.Revision < k.Revision:
		return fmt.Sprintf("etcd's revision went backwards: it is %d, and this replica has seen %d", v.Revision,
			k.Revision)
`,
					New: "",
				},
				{
					File: "store/record_shard.go",
					Old: `	case s.Revision > v.Revision:
		return fmt.Sprintf("etcd's revision went backwards: it is %d, and was %d when a leader was last at work",
			v.Revision, s.Revision)
`,
					New: "",
				},
			},
			Harmless: "records are missing that caches, agents' claims and machines know of, " +
				"and that holds the shard as well (SAFE-15)",
			Scenario: "TestEtcdIsRestoredFromASnapshot",
		},
	}
}
