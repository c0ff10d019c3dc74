// Package host measures how much of its machine is in use, for the agent's reports (DET-13).
//
// It samples in the background and keeps the last sample, so that a report never waits for a source. A source
// that fails yields zero, and one line at debug level until it works again. It judges nothing.
package host
