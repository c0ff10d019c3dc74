// Package secrets keeps the secret values of a workload's environment in memory (SEC-6), and
// removes them from everything that leaves the machine.
//
// # Invariants
//
//   - Values arrive over the stream and go into environments: of the workload, its drain hook and
//     its exec checks. They are in no file, log or command line.
//   - Every value that this agent has ever received is removed from texts, including replaced ones:
//     a workload keeps the values that it was started with.
//   - While secrets are wanted and have not arrived ([Holder.Blind]), the workload's output cannot
//     be checked for them, and is not sent.
//
// # What it does not do
//
// It finds a value in plain form, as one line of several, in base64, in hex, and as encoded in a
// URL or in JSON, but not one that a program has otherwise encoded or split. It does not look for
// values of fewer than 6 bytes, since they occur in many harmless texts, nor for values that only
// an earlier run of the agent received and that have been replaced since. What the workload writes
// stays in its files on the machine unchanged.
package secrets
