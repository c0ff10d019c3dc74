// Package amazon is what all of Leasehold's uses of Amazon's services share: credentials, the rate
// of requests, and which errors mean that a request came too often or from a caller that is not
// allowed to.
//
// Package amazontest is the same for servers of ours that stand in for Amazon's.
package amazon
