// Package authority certifies keys of workloads (FILE-2). The authorities are defined in the
// replica's own configuration; groups only name them (SEC-7).
//
//	authority.go  the authorities of a replica, and the checks before and after one signs
//	order.go      what a certificate is to be, and whether a request asks for that
//	own.go        an authority whose key is here
//	program.go    an authority that a program of the user's speaks to
//
// # Invariants
//
//   - A certificate names what was ordered for the instance, never more. The request is compared
//     with the order, and the authority's answer with both.
//   - Only public keys arrive here. Nothing here can create or read a private key of a workload.
//   - An authority that hangs or fails affects only the callers that wait for it, for a bounded
//     time. Its last bundle stays in force.
//   - Signing the same twice, or for an abandoned request, changes nothing anywhere.
//
// # What it does not do
//
// It keeps no list of signed certificates, and revokes none: certificates are short-lived, and an
// authority that must no longer be trusted is removed from the bundle.
package authority
