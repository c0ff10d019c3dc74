// Package upgrade brings a machine to another version of its agent, and back if no coordinator
// acknowledges that version (PROV-7).
//
//	place.go    the directory: programs, the state file, and which program a start has to run
//	offers.go   takes offers: verifies, downloads, and reports how it went
//	fetch.go    the download
//	trial.go    runs the new program beside, as a child, and judges it
//	guard.go    acts on the lease meanwhile, if nothing else does in time
//
// # How a machine gets another version
//
// The installed program stays as it is: its package owns it, and several agents of one host may
// share it. New programs are below the agent's state directory.
//
//  1. The manager verifies the statement that came with an offer, downloads the program, compares
//     size and hash, syncs it, and records the trial.
//  2. The agent leaves as for any restart: it says goodbye and keeps the workload running. Its
//     process stays, and starts the new program as its child, with EnvTrial in the environment.
//  3. The child runs as any agent does. When the first of its reports is acknowledged it creates
//     the file that EnvTrial names, leaves in the same way, and exits with 0.
//  4. The process then becomes the new program, by exec: same process ID, children and supervisor.
//     If the child ends otherwise, or not in time, it becomes the old program again, by exec as
//     well.
//
// So the old program decides even if the new one does not start, hangs or crashes. EnvTrial, the
// file, the exit code and [Place.Ended] are a contract between releases.
//
// # Invariants
//
//   - At each start a program runs only if Keys open its statement and its size and hash match.
//   - When an agent starts, a recorded trial ends: its program stays if the child had created its
//     file, else it is taken back.
//   - An offer is tried once: its token is remembered with the outcome.
//   - A program of the state directory runs only in place of the installed version that it was
//     installed over: a package that an operator installs takes precedence.
package upgrade
