// Package amazontest is what servers of ours share that stand in for Amazon's: requests of the
// Query API, forms in and XML out, and their signatures (version 4), which are checked.
package amazontest
