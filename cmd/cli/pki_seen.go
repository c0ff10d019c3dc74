package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// trustSeen reads what the shard's replicas and agents report about certificates, all at one
// revision.
func (inv *Invocation) trustSeen(ctx context.Context) (trustSeen, error) {
	lists := map[string]store.Listing{}
	var at store.Revision
	for _, kind := range []string{store.KindReplicas, store.KindInstances, store.KindReports} {
		l, err := inv.list(ctx, inv.keys().Of(kind), at)
		if err != nil {
			return trustSeen{}, err
		}
		lists[kind], at = l, l.Revision
	}
	replicas, err := decodeAll[store.Replica](lists[store.KindReplicas])
	if err != nil {
		return trustSeen{}, err
	}
	instances, err := decodeInstances(lists[store.KindInstances])
	if err != nil {
		return trustSeen{}, err
	}
	reports, err := decodeAll[store.Report](lists[store.KindReports])
	if err != nil {
		return trustSeen{}, err
	}
	byID := map[string]*store.Report{}
	for i := range reports {
		byID[reports[i].Record.Instance] = &reports[i].Record
	}
	seen := trustSeen{replicas: replicas}
	for _, v := range instances {
		switch phase := v.Record.Phase; {
		case phase.Registered(), phase == store.Creating, phase == store.Booting:
			seen.agents = append(seen.agents,
				agentSeen{
					id: v.Record.ID, phase: phase, created: v.Created, called: v.Record.Called,
					report: byID[v.Record.ID], record: v.Record,
				})
		}
	}
	slices.SortFunc(seen.agents, func(a, b agentSeen) int { return strings.Compare(a.id, b.id) })
	return seen, nil
}
