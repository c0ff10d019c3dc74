// Package balancer is the contract between Leasehold and whatever spreads traffic over instances.
// It stands beside the contract of providers and shares its kinds of error.
//
// The package imports the standard library and package provider alone; adapters (balancer/haproxy,
// …) import it. Package balancer/suite holds the one suite that every adapter passes.
//
//	balancer.go  the calls, and what is promised of them
//	listing.go   what a balancer has, and what may be concluded from it
//	check.go     what every adapter refuses
//
// # Words
//
// A balancer has a name within its shard. Behind the name there are one or more targets: several
// processes of HAProxy, one target group, one program. A member is the entry of an instance in a
// target. Everything else that a target holds is foreign.
//
// # What a balancer promises
//
//   - Every call is safe to repeat, by any leader, after any crash. A call that comes late does no
//     more than the same call in time: Drain and Remove act on the member at the address that they
//     name, so that they never touch an instance that has moved meanwhile. A late Add may put a
//     member back; the next List shows it.
//   - What is foreign is neither changed nor removed, and never listed as a member.
//   - Add, Drain and Remove reach every target, or return an error. After an error some targets may
//     have been changed: List tells which.
//   - List has for each target either all of its members or an error, never a part (LB-3).
//   - A call ends when its context ends, and soon after CallTimeout in any case.
//   - Methods may be called concurrently, and several coordinators may call at once for a while.
//
// # Who is whose
//
// Where a balancer holds names (Capabilities.Named), a member carries the shard's ID, the
// balancer's name and the instance's ID. Where it does not, a member is what has the address and
// port that the caller has recorded for an instance: the caller hands its records to List. Of two
// instances with one address and port such a balancer knows one, so the caller removes the earlier
// one before it adds the later one. When the address or port of an instance changes, the caller
// removes the member as recorded, and adds the new one: that is right everywhere.
//
// # What it does not do
//
// It decides nothing: it neither repeats calls nor puts back by itself what was forgotten, and it
// keeps no records.
package balancer
