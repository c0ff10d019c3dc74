// Package adapters links everything that this project can talk to: the kinds of provider and of
// load balancer, and the xDS server. The program leasehold links them all. Other programs with a
// coordinator (benches, fault tests, tests of the command line) name the few that they need: the
// modules of Amazon and Envoy are half of what is compiled for leasehold.
package adapters
