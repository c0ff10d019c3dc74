package mutants

// ofTraffic are mistakes with load balancers and files.
func ofTraffic() []Mutant {
	return []Mutant{
		{
			Name: "late-member-stays",
			What: "A member that a late call put back after its instance was deleted is not removed: " +
				"the load balancer goes on sending it connections.",
			Rules: []string{"LB-3"},
			Edits: []Edit{{
				File: "coordinator/plan/traffic.go",
				Old:  "	for name, b := range s.Balancers {\n		for _, m := range b.Strays {\n",
				New:  "	for name, b := range s.Balancers {\n		for _, m := range b.Strays[:0] {\n",
			}},
			Likely: []string{"member-added-late"},
		},
		{
			Name: "forgotten-member-not-put-back",
			What: "A member that was added once is believed to be there: what the load balancer forgot is " +
				"not put back by the same leader.",
			Rules: []string{"LB-3"},
			Edits: []Edit{{
				File: "coordinator/plan/traffic.go",
				Old:  "		case e.fresh && e.has.InPlace() && e.has.Answered > 0:\n",
				New:  "		case e.calls.Last == MemberAdd || e.fresh && e.has.InPlace() && e.has.Answered > 0:\n",
			}},
			Likely: []string{"balancer-forgets", "balancer-meddled-with"},
		},
		{
			Name:  "drained-in-service",
			What:  "The agent is told to drain at once, not after the load balancer sends its instance nothing new.",
			Rules: []string{"LB-1"},
			Edits: []Edit{{
				File: "coordinator/plan/traffic.go",
				Old:  "	case d.leftTraffic(m) || !d.now.Before(half):\n",
				New:  "	case m.phase == store.Draining:\n",
			}},
			Likely: []string{"instance-ordered", "balancer-fails", "group-edited"},
		},
		{
			Name:  "stopped-in-service",
			What:  "A machine is stopped without a wait for the load balancer that is to remove it.",
			Rules: []string{"LB-1"},
			Edits: []Edit{{
				File: "coordinator/plan/traffic_entries.go",
				Old:  "	if m.Record.Dead {\n		return true\n	}\n",
				New:  "	if m.phase == store.Deleting {\n		return true\n	}\n",
			}},
			Likely: []string{"balancer-silent", "instance-ordered"},
		},
		{
			Name: "file-written-in-place",
			What: "The agent writes a managed file in its place: where the disk is full, " +
				"or the agent dies, it is neither the old one nor the new one.",
			Rules: []string{"FILE-3"},
			Edits: []Edit{
				{
					File: "agent/files/disk.go",
					Old:  "	return filepath.Join(dir, \".\"+base+newSuffix)\n",
					New:  "	return filepath.Join(dir, base+newSuffix[:0])\n",
				},
				{
					File: "agent/files/disk.go",
					Old:  "	if err := root.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {\n		return err\n	}\n",
					New:  "",
				},
				{File: "agent/files/disk.go", Old: "os.O_CREATE|os.O_EXCL|os.O_WRONLY", New: "os.O_CREATE|os.O_TRUNC|os.O_WRONLY"},
				{File: "agent/files/disk.go", Old: "		_ = root.Remove(next) // the next attempt tries again\n", New: ""},
			},
			Likely: []string{"file-edited-on-full-disk"},
		},
		{
			Name:  "certificate-not-renewed",
			What:  "The agent does not renew a certificate after two thirds of its life, nor later.",
			Rules: []string{"FILE-2"},
			Edits: []Edit{{
				File: "agent/files/certificate.go",
				Old:  "	case m.due(f.GetPath(), last.Issued):\n",
				New:  "	case m.due(f.GetPath(), last.Issued) && false:\n",
			}},
			Scenario: "TestNothingHappensForALifeOfCertificates",
		},
		{
			Name: "private-key-in-report",
			What: "The report on a certificate has the private key in it, " +
				"and the agent takes it out of nothing that it tells.",
			Rules: []string{"FILE-2"},
			Edits: []Edit{
				{
					File: "agent/files/certificate.go",
					Old:  "	m.writes[f.GetPath()] = write{time.Now(), mended}\n",
					New:  "	m.writes[f.GetPath()] = write{time.Now(), mended + string(text.key)}\n",
				},
				{
					File: "agent/files/certificate.go",
					Old:  "		m.deps.Hide(f.GetCertificate().GetKey(), pem.EncodeToMemory(block))\n",
					New:  "		_ = pem.EncodeToMemory(block)\n",
				},
			},
		},
	}
}
