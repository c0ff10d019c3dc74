// Package upgrade brings a machine to another version of its agent, and back where that version is
// not acknowledged by a coordinator (PROV-7).
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
//  2. The agent leaves as for any restart: goodbye, and the workload runs on. Its process stays. It
//     starts the new program as its child, with EnvTrial in the environment.
//  3. The child runs as any agent does. When the first of its reports is acknowledged it creates
//     the file that EnvTrial names, leaves likewise, and exits with 0.
//  4. The process then becomes the new program, by exec: same process ID, children and supervisor.
//     If the child ends otherwise, or not in time, it becomes the old program again, by exec as
//     well.
//
// So the old program judges, whatever the new one does: it may not start, hang, or crash. EnvTrial,
// the file, the exit code and [Place.Ended] are a contract between releases.
//
// # Invariants
//
//   - Nothing runs that Keys did not open and whose size and hash were not compared, at each start.
//   - A trial that is recorded and not over when an agent starts is over: it stands if the child
//     had created its file, else it is taken back.
//   - An offer is tried once: its token is remembered with the outcome.
//   - A program of the state directory runs only in place of the installed version that it was
//     installed over: a package that is installed by hand wins.
package upgrade
