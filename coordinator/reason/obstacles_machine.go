package reason

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/store"
)

// machineObstacles concern providers and load balancers.
var machineObstacles = map[store.BlockedKind]obstacle{
	store.BlockedByProvider: {
		why: textOf,
		until: func(b *store.Blocked) string {
			if b.Of.Flag {
				return "the group or the provider's file is corrected; the provider is asked again meanwhile"
			}
			return "the provider is asked again"
		},
		command: func(b *store.Blocked) string {
			if b.Of.Flag {
				return groupEdit + b.Of.Group
			}
			return b.Command
		},
	},
	store.BlockedByRefusal: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("provider %s: %s (%s)", b.Of.Name, b.Of.Text, machines(b.Of.Count))
		},
		until: always("the provider accepts one: it is asked with one machine every 20s"),
	},
	store.BlockedByCopies: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("the provider lists %s more with its tags, which none of our calls made: %s",
				Number(b.Of.Count, "machine"), b.Of.Text)
		},
		until: always("the tags are taken off what is not the instance, or the machine is removed at the provider"),
	},
	store.BlockedByEarlierCalls: {
		why:   always("an earlier call may still create its machine"),
		until: always("that call has timed out and a list shows no machine"),
	},
	store.BlockedByAgentStop: {
		why: always("its machine was set up by hand, and its agent has not confirmed yet that the workload has " +
			"stopped"),
		until:   always("the agent confirms it, or an operator says that the machine is gone"),
		command: forInstance("leasehold instance delete --gone "),
	},
	store.BlockedByUnconfigured: {
		why: func(b *store.Blocked) string {
			return "no running coordinator is configured with " + providerAt(b.Of.Name, b.Of.Text) +
				": its machine can neither be seen nor be removed"
		},
		until: func(b *store.Blocked) string {
			said := "one is, or an operator says that the machine is gone"
			if b.Of.Opens.IsZero() {
				return said
			}
			return said + ", which counts from " + b.Of.Opens.UTC().Format(time.RFC3339) + " on"
		},
		command: forInstance("leasehold instance delete --gone "),
	},
	store.BlockedByOpening: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("it is healthy, and load balancer %s has not confirmed it: %s", b.Of.Name,
				balancerState(b.Of.Balancer, b.Of.Text))
		},
		until: orAfter("the load balancer sends it traffic", ", or %s is over"),
	},
	store.BlockedByTraffic: {
		why: func(b *store.Blocked) string {
			if b.Of.Balancer == store.BalancerConnections || b.Of.Flag { // Flag: from the release before
				return fmt.Sprintf("it leaves load balancer %s, with %s left", b.Of.Name, connections(b.Of.Count))
			}
			return fmt.Sprintf("it leaves load balancer %s: %s", b.Of.Name, balancerState(b.Of.Balancer, b.Of.Text))
		},
		until: orAfter("its last connection ends", ", or %s is over"),
	},
	store.BlockedByBalancer: {
		why: func(b *store.Blocked) string {
			return fmt.Sprintf("load balancer %s has to do its part first: %s", b.Of.Name,
				balancerState(b.Of.Balancer, b.Of.Text))
		},
		until: always("the load balancer answers"),
	},
}

// providerAt names a provider, or one site of it.
func providerAt(provider, site string) string { return also("provider "+provider, " at site ", site) }
