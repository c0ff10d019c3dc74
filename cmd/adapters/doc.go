// Package adapters has all that this project can talk to: the kinds of provider and of load
// balancer, and the server of xDS. The program leasehold links them. What runs a coordinator
// otherwise (benches, the cast of fault tests, tests of the command line) names the few that it
// needs: Amazon's and Envoy's modules are the half of what is compiled for leasehold.
package adapters
