// Package secrets holds what a workload's environment has and nobody else is to see, in memory
// alone (SEC-6), and takes it out of whatever leaves the machine.
//
// # Invariants
//
//   - Values come with the stream and go into environments: of the workload, its drain hook and its exec checks. They are in no file, log or command line.
//   - Every value that this agent was ever told is taken out of texts, also one that was replaced: a workload has the one it was started with.
//   - As long as the secrets are wanted and not told ([Holder.Blind]), what the workload says cannot be judged, and is not passed on.
//
// # What it does not do
//
// It finds a value as it is, as one line of several, in base64, in hex and as it stands in a URL or
// in JSON; not one that a program has otherwise disguised or split. It leaves values of fewer than
// 6 bytes alone, since they stand in many an innocent text, and those that an earlier run of the
// agent was told and that have been replaced since. What the workload writes stays in its files on
// the machine as it was written.
package secrets
