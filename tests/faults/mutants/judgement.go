package mutants

// ofJudgement are mistakes in what is believed of machines.
func ofJudgement() []Mutant {
	return []Mutant{
		{
			Name: "no-grace",
			What: "Whose lease has ended is judged lost though etcd, a replica or the leader was disturbed a moment ago: " +
				"agents get no time to return.",
			Rules: []string{"SAFE-1"},
			Edits: []Edit{{
				File: "coordinator/plan/judge.go",
				Old: `	if now.Before(s.GraceEnd) {
		return Judgment{
			Verdict: store.Suspect, Rule: "SAFE-1", Awaits: store.AwaitsCalm,
			Cause: store.Cause{Kind: store.CauseGrace, Text: s.GraceWhy}, Facts: facts,
			Until: s.GraceEnd,
		}
	}
`,
				New: "",
			}},
			Likely: []string{"leader-lost-beside-machines", "replica-stopped"},
		},
		{
			Name:  "lost-without-confirmation",
			What:  "Every end of a lease is confirmed after half a second, also of one whose stream was open at last.",
			Rules: []string{"DET-17"},
			Edits: []Edit{{
				File: "coordinator/plan/judge.go",
				Old:  "	return max(in.Record.Spec.Report.LeaseTTL.D(), s.SessionTTL+time.Second)\n",
				New:  "	return confirmLost\n",
			}},
			Likely: []string{"leases-dropped"},
		},
		{
			Name:  "lease-end-is-loss",
			What:  "Whose lease has ended is lost, at once: there is neither confirmation nor grace.",
			Rules: []string{"DET-17", "SAFE-1"},
			Edits: []Edit{
				{
					File: "coordinator/plan/judge.go",
					Old:  "	due := in.AliveGone.Add(wait)\n	if now.Before(due) {\n",
					New:  "	if due := in.AliveGone; now.Before(due) {\n",
				},
				{
					File: "coordinator/plan/judge.go",
					Old: `	if now.Before(s.GraceEnd) {
		return Judgment{
			Verdict: store.Suspect, Rule: "SAFE-1", Awaits: store.AwaitsCalm,
			Cause: store.Cause{Kind: store.CauseGrace, Text: s.GraceWhy}, Facts: facts,
			Until: s.GraceEnd,
		}
	}
`,
					New: "",
				},
			},
			Likely: []string{"leases-dropped", "leader-lost-beside-machines"},
		},
		{
			Name:  "list-believed-alone",
			What:  "A machine that two Lists leave out is dead, though its agent reports.",
			Rules: []string{"DET-4"},
			Edits: []Edit{{
				File: "coordinator/plan/judge.go",
				Old:  "		case !streamGone || see.Times < 2:\n",
				New:  "		case !streamGone && see.Times < 2:\n",
			}},
			Likely: []string{"list-lies"},
		},
	}
}
