// Package balancertest plays the suite of package balancer/suite as subtests.
package balancertest
