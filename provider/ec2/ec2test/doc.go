// Package ec2test is a server of EC2's Query API for tests: forms in, XML out. It is built from
// Amazon's documentation, not from their code, and does what makes EC2 hard to use:
//
//   - What was made shows after Lag, its tags after TagLag.
//   - Requests beyond a bucket of tokens are refused with RequestLimitExceeded.
//   - A client token yields the same machine for the same request in the same availability zone,
//     and IdempotentParameterMismatch for another, until 24 hours after its end.
//   - Lists have pages. Terminated machines are listed for an hour.
//   - Types run out in a zone, subnets run out of addresses, accounts of processors and Spot
//     machines.
//   - Signatures (version 4), their dates and session tokens are checked.
//
// What a machine does is a function of the test's.
//
// It knows the requests of package ec2 alone, and of those the parameters that package ec2 sends:
// another parameter or filter is refused.
package ec2test
