package mutants

// ofTheGateway are mistakes in agents' sessions and in the store's client.
func ofTheGateway() []Mutant {
	return []Mutant{
		{
			Name: "automatic-keepalive",
			What: "The gateway keeps an agent's lease alive by itself, report or not: a machine that died or was cut off " +
				"lives on, and so does its lease.",
			Rules: []string{"DET-2"},
			Edits: []Edit{
				{
					File: "coordinator/gateway/registration.go",
					Old:  "	s.overdue = time.AfterFunc(s.overdueAfter(), s.becomeOverdue)\n	return nil\n",
					New:  "	s.overdue = time.AfterFunc(s.overdueAfter(), s.becomeOverdue)\n	go s.keepAlive(s.g.life)\n	return nil\n",
				},
				{
					File: "coordinator/gateway/alive.go",
					Old:  "// overdueAfter returns the silence after which a report is overdue (DET-6).\n",
					New: `// keepAlive renews the lease for as long as there is one.
func (s *session) keepAlive(ctx context.Context) {
	tick := time.NewTicker(s.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.exchange.Acquire(ctx, 1) != nil {
			return
		}
		_, err := s.g.deps.Store.Renew(ctx, s.lease.ID)
		s.exchange.Release(1)
		if errors.Is(err, store.ErrLeaseGone) {
			return
		}
	}
}

// overdueAfter returns the silence after which a report is overdue (DET-6).
`,
				},
			},
			Scenario: "TestWhoIsNotHeardHasNoLease",
		},
		{
			Name: "end-marks-newer-session",
			What: "How a stream ended is written without comparing its epoch: the end of an agent's old " +
				"session calls its new one lost, or moved.",
			Rules: []string{"DET-18"},
			Edits: []Edit{{
				File: "coordinator/gateway/alive.go",
				Old:  "		if !f.alive.Present() || !s.owns(a) {\n",
				New:  "		if !f.alive.Present() || a.BootID != s.bootID {\n",
			}},
			Likely: []string{"connections-reset", "replica-frozen", "replica-stopped", "replica-cut-from-agents"},
		},
		{
			Name: "failed-renewal-acknowledged",
			What: "A renewal is hardly waited for, a report acknowledged though it failed, and no agent sent away: " +
				"agents stay with a replica that cannot renew.",
			Rules: []string{"DET-14"},
			Edits: []Edit{
				{
					File: "coordinator/gateway/report.go",
					Old:  "	l, err := s.g.deps.Store.Renew(ctx, s.lease.ID)\n",
					New: "	ctx, cancel := context.WithTimeout(ctx, s.interval/4)\n	defer cancel()\n	l, " +
						"err := s.g.deps.Store.Renew(ctx, s.lease.ID)\n",
				},
				{
					File: "coordinator/gateway/report.go",
					Old:  "	if !errors.Is(err, store.ErrLeaseGone) {\n		return err\n	}\n	return s.regrant(ctx)\n",
					New:  "	if !errors.Is(err, store.ErrLeaseGone) {\n		return nil\n	}\n	return s.regrant(ctx)\n",
				},
				{
					File: "coordinator/gateway/gateway.go",
					Old:  "	return time.Since(g.failing) >= ttl/3\n",
					New:  "	return time.Since(g.failing) >= time.Hour\n",
				},
			},
			Scenario: "TestOneReplicaIsCutOffFromEtcd",
			Harmless: "no agent stays with a replica that has lost etcd, even so: other layers send it on",
		},
		{
			Name: "used-token-keeps-its-lease",
			What: "The lease of a join token is not revoked when a machine has joined with it: " +
				"one is left for hours of every machine ever made.",
			Rules: []string{"SEC-2"},
			Edits: []Edit{{
				File: "coordinator/gateway/join.go",
				Old: "		if used.Lease != 0 { // nothing is on it any longer; otherwise it expires by itself\n			g.goDo(func(ctx " +
					"context.Context) { _ = g.deps.Store.Revoke(ctx, used.Lease) })\n		}\n",
				New: "",
			}},
			Likely: []string{"machine-crashes"},
		},
		{
			Name:  "watch-skips-what-it-missed",
			What:  "A watch that is opened again begins at what etcd holds by then: what happened in between is never told.",
			Rules: []string{"SAFE-3"},
			Edits: []Edit{{
				File: "store/etcdstore/watch.go",
				Old:  "		if w.next == 0 {\n			w.next = store.Revision(resp.Header.GetRevision()) + 1\n		}\n",
				New:  "		w.next = max(w.next, store.Revision(resp.Header.GetRevision())+1)\n",
			}},
			Likely: []string{"group-edited-unseen"},
		},
	}
}
