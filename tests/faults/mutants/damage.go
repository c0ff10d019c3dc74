package mutants

// ofDamage are mistakes in what is made of records that are lost.
func ofDamage() []Mutant {
	absent := "	case errors.Is(err, store.ErrNotFound):\n		return errUnrecorded\n	case err != nil:\n		return " +
		"err\n	}\n	note, err := store.Decode[store.Gone](kv)\n"
	return []Mutant{
		{
			Name: "absence-retires",
			What: "An agent whose record is absent is told that it was deleted, whether or not a note says so: " +
				"deleting records stops all workloads.",
			Rules: []string{"SAFE-14"},
			Edits: []Edit{{
				File: "coordinator/gateway/unrecorded.go",
				Old:  absent,
				New: "	case errors.Is(err, store.ErrNotFound):\n		return s.confirm(ctx, &retired{revision: 1, " +
					"phase: protocol.PhaseGone})\n	case err != nil:\n		return err\n	}\n	note, err := store.Decode[store.Gone](kv)\n",
			}},
			Scenario: "TestTheRecordsOfAllInstancesAreDeleted",
		},
		{
			Name: "bare-retired-believed",
			What: "A replica calls an absence retired and names no record, as the release before did, " +
				"and the agent asks for none before it stops its workload.",
			Rules: []string{"SAFE-14"},
			Edits: []Edit{
				{
					File: "coordinator/gateway/unrecorded.go",
					Old:  absent,
					New: "	case errors.Is(err, store.ErrNotFound):\n		return &retired{}\n	case err != nil:\n		return " +
						"err\n	}\n	note, err := store.Decode[store.Gone](kv)\n",
				},
				{
					File: "agent/session/step.go",
					Old: "	if reason == protocol.Refused_RETIRED && !condemned.Holds() {\n		reason = protocol.Refused_UNKNOWN // " +
						"nothing shows that a record ended the instance (SAFE-14)\n	}\n",
					New: "",
				},
			},
			Scenario: "TestEtcdIsEmptiedAndTheShardRecovered",
		},
		{
			Name: "lost-is-never-made",
			What: "For the leader a record that is lost is one that never was: its slot is filled at " +
				"once, and nothing is put on hold.",
			Rules: []string{"SAFE-15"},
			Edits: []Edit{
				{
					File: "coordinator/plan/damage.go",
					Old:  "		if x.What == store.DamageLost && x.Reviewed(&d.s.Shard.Record) {\n",
					New:  "		if x.What == store.DamageLost {\n",
				},
				{
					File: "coordinator/plan/damage.go",
					Old:  "		if d := &s.Damaged[i]; !d.Reviewed(&s.Shard.Record) {\n",
					New:  "		if d := &s.Damaged[i]; d.What != store.DamageLost && !d.Reviewed(&s.Shard.Record) {\n",
				},
			},
			Scenario: "TestTheRecordsOfAllInstancesAreDeleted",
		},
		{
			Name: "shard-created-again",
			What: "A replica whose shard is gone from etcd creates it, instead of waiting until etcd is " +
				"restored or the shard recovered.",
			Rules: []string{"SAFE-15"},
			Edits: []Edit{{
				File: "coordinator/waiting.go",
				Old:  "	default:\n		w.r.wait(shardMissing(w.r.known.get(), w.r.cfg.Shard))\n",
				New: `	default:
		if made, err := store.NewShard(w.r.cfg.Shard, w.id); err == nil {
			go func() { _ = store.CreateShard(context.Background(), w.r.deps.Store, w.r.keys, made) }()
		}
		w.r.wait(shardMissing(w.r.known.get(), w.r.cfg.Shard))
`,
			}},
			Likely: []string{"etcd-emptied"},
		},
	}
}
