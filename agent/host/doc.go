// Package host measures how much of its machine is in use, for the agent's reports (DET-13).
//
// It samples in the background and keeps the last sample, so that a report never waits for a
// source. A source that fails yields zero, and one line at debug level until it works again. It
// judges nothing.
//
// Over one, five and fifteen minutes it tells the processors' busy time of all their time, memory
// and disk as the mean over the time, and the bytes that went over the network. A [Window] says how
// much of its span samples cover yet: after the agent's start that is less than all of it, and
// bytes are of the time covered. Samples that a source failed are left out of its mean. The samples
// of fifteen minutes are all that is kept.
package host
