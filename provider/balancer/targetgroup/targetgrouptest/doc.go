// Package targetgrouptest is a server of the Query API of Amazon's Elastic Load Balancing for
// tests: target groups and their targets. It is ours, built from Amazon's documentation and not
// from their code, and does what makes target groups hard to use:
//
//   - A target that is registered is initial until a check has passed; checks connect to it by TCP.
//   - A target that is deregistered drains for a while, and is gone then. Deregistering it again
//     restarts the drain.
//   - Deregistering what is not registered succeeds. A target that is asked for by name and is not
//     registered is listed as unused.
//   - Requests beyond a bucket of tokens are refused; so are too many targets, groups that do not
//     exist, and parameters that it does not know.
//   - Signatures (version 4), their dates and session tokens are checked.
//
// It balances nothing: no traffic goes through it.
package targetgrouptest
