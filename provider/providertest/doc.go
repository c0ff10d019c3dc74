// Package providertest is the one suite that every provider passes: it proves the sentences of the
// contract in package provider, one test each.
//
// An adapter's test calls [Run] with a [Harness] that opens a provider and can kill a machine from
// outside. With LEASEHOLD_PROMISES set, what comes of each promise is written down, and `make
// promises` makes docs/providers/promises.md of it. Nothing in the suite depends on how fast
// machines boot: it polls until a deadline.
//
// # What it does not do
//
// It injects no faults: what happens when an adapter's own technology fails is for the adapter's
// tests. Those that make many machines meanwhile have one judge, [Crowd].
package providertest
