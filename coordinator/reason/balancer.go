package reason

import "github.com/leasehold/leasehold/store"

// balancerState says how a load balancer has an instance.
func balancerState(state store.BalancerState, text string) string {
	switch state {
	case store.BalancerUnconfigured:
		return "the leading coordinator is not configured with it"
	case store.BalancerSilent:
		return "it does not answer: " + text
	case store.BalancerNoAddress:
		return "its provider has not said where it is"
	case store.BalancerOldAddress:
		return "it still has the instance at another address"
	case store.BalancerAdding:
		return "it is being added"
	case store.BalancerDown:
		return also("it is down there", ": ", text)
	case store.BalancerChecking:
		return "its checks there have not passed yet"
	case store.BalancerMissing:
		return "it is not there yet"
	case store.BalancerServes:
		return "it serves until another instance does in its place"
	case store.BalancerRemoving:
		return "it is being taken out"
	case store.BalancerPartSilent:
		return "a part of it does not answer"
	case store.BalancerUncounted:
		return "it does not say which connections are left"
	default: // an error or, from a release before, all of it
		return text
	}
}
