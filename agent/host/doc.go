// Package host measures the load of its machine for the agent's reports (DET-13).
//
// It samples in the background and keeps the last sample, so a report never waits for a source. A
// source that fails yields zero, and one log line at debug level until it works again. The package
// judges nothing.
//
// Over one, five and fifteen minutes it averages the processors' busy share, memory and disk, and
// sums the bytes sent and received. A [Window] says how much of its span has been sampled: less
// than all of it just after the agent's start. Bytes cover the sampled time only. Samples that a
// source failed to deliver are left out of its average. Only the samples of the last fifteen
// minutes are kept.
package host
