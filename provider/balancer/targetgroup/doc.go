// Package targetgroup has Amazon's load balancers send traffic to instances, as targets of target
// groups (Application and Network Load Balancers). docs/balancers/target-groups.md is the page for
// users.
//
//	config.go       what an operator sets
//	api.go          the operations of the SDK that are linked
//	errors.go       what an error of Amazon's means
//	targetgroup.go  the calls, over all target groups
//
// # Invariants
//
//   - A target is an IP address and a port: it carries no name and no tag. So a member is what has
//     the address and port that is recorded for an instance, and everything else in the group is
//     foreign.
//   - The drain is Amazon's: a target that is deregistered drains for the group's deregistration
//     delay, and is gone then. Drain and Remove are the same, and neither is sent for a target that
//     drains already, so that nothing starts over.
//   - Requests are sent once. Their rate is bounded by one gate, which is closed while Amazon
//     throttles.
package targetgroup
