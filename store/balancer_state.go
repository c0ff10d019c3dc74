package store

// BalancerState is how a load balancer has an instance, as far as that is a reason to wait. Package
// reason renders it, with the text beside it. A release before wrote the text alone.
type BalancerState string

// The states, with what the text is.
const (
	BalancerUnconfigured BalancerState = "unconfigured" // at the leading coordinator
	BalancerSilent       BalancerState = "silent"       // text: the error of its last List
	BalancerCallFails    BalancerState = "call_fails"   // text: the error
	BalancerNoAddress    BalancerState = "no_address"   // of the instance is known
	BalancerNoPort       BalancerState = "no_port"      // text: what load_balancers says, and the address
	BalancerOldAddress   BalancerState = "old_address"  // it still has the instance there
	BalancerAdding       BalancerState = "adding"       // the instance
	BalancerDown         BalancerState = "down"         // text: its reason, if it says so
	BalancerChecking     BalancerState = "checking"     // its checks have not passed yet
	BalancerMissing      BalancerState = "missing"      // the instance is not there yet
	BalancerServes       BalancerState = "serves"       // until another instance does
	BalancerRemoving     BalancerState = "removing"     // the instance
	BalancerPartSilent   BalancerState = "part_silent"  // a part of it does not answer
	BalancerUncounted    BalancerState = "uncounted"    // it does not say which connections are left
	BalancerConnections  BalancerState = "connections"  // Count are left
)
