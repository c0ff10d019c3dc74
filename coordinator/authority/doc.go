// Package authority certifies keys of workloads (FILE-2). The authorities stand in the replica's
// own configuration; groups only name them (SEC-7).
//
//	authority.go  the authorities of a replica, and the checks before and after one signs
//	order.go      what a certificate is to be, and whether a request asks for that
//	own.go        an authority whose key is here
//	program.go    an authority that a program of the user's speaks to
//
// # Invariants
//
//   - A certificate names what was ordered for the instance, never more. The request is compared
//     with the order, and what an authority answers with both.
//   - A key arrives as a public one. Nothing here can make or read a private key of a workload.
//   - An authority that hangs or fails harms those who wait for it alone, for a bounded time. What
//     it said last of what to trust stays in force.
//   - Signing the same twice, or for an abandoned request, changes nothing anywhere.
//
// # What it does not do
//
// It keeps no list of what was signed, and revokes nothing: certificates are short-lived, and an
// authority that must not be trusted any longer leaves the bundle.
package authority
