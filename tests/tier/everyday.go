//go:build !nightly

package tier

// Nightly reports whether these tests were built for the nightly tier.
const Nightly = false
