// Package claim seals what a coordinator knows of an instance, and reads such seals (SAFE-17). The
// agent keeps the sealed claim on its machine and shows it with each hello, so that the instance
// can be recognized after its record was lost.
//
// # Invariants
//
//   - A seal is a signature by an agents' authority over the claim and a context of its own: it is
//     never a certificate, and no certificate is a seal.
//   - It names its authority and is valid as long as that is trusted. It does not expire with the
//     authority's certificate: a claim is read when records are lost, which may be long after it
//     was made.
//   - Only the shard and the instance that a claim names may use it; the caller compares them.
//
// # What it does not do
//
// It makes no decision: a claim says what was true when it was sealed.
package claim
