// Package process is a provider whose machines are processes on this host: each is an agent with
// its own directory, port and log. It serves leasehold dev, tests, and hosts on which that is all
// one needs.
//
// # Layout of the directory
//
//	<Dir>/<instance>/machine.json    the record: tags, zone, port, boot, process, how it ended
//	<Dir>/<instance>/bootstrap.json  the document for the agent
//	<Dir>/<instance>/agent.log       what the agent wrote; agent.log.1 is the part before
//	<Dir>/<instance>/work/           the agent's working directory
//	<Dir>/.locks/<instance>          flock: one call at a time for an ID, across processes too
//	<Dir>/.deleted/<instance>@<shard>  tombstone, kept for a day: a late Create fails
//	<Dir>/.site                      the directory's name: coordinators of others do not see it
//	<Dir>/.new, <Dir>/.trash         machines on their way in and out; never listed
//
// # Invariants
//
//   - The directory is the only memory. A new provider, also after a crash, knows all that the last
//     one did.
//   - A machine's directory appears whole and vanishes whole, by rename. So List sees a machine or
//     does not.
//   - The intent to start an agent is recorded before the fork, its process after it. What was
//     interrupted in between is found again by the marker in the process's environment, and never
//     started beside it. The lock is held by the child until its exec, so no other call looks in
//     the moment in which the child has no marker yet.
//   - A process is signalled only when it is positively known to be the machine's: by the marker in
//     its environment, by pid together with start time and the kernel's boot ID (the agent's in
//     the record, the workload's in the agent's workload.json), or because such a process was seen
//     to be its parent, or the living leader of its session or process group. Never by a bare pid.
//   - An agent is started in its own session and outlives the coordinator. A service manager that
//     kills all that its service started must be set not to (systemd: KillMode=process).
//   - There are no goroutines between calls. Ended agents are reaped by the calls that find them.
//
// # How long calls take
//
// Create, Delete, List and Restart end well within Capabilities().CallTimeout. Stop takes up to its
// own timeout and a few seconds more, so the caller's context must allow for that.
//
// # What it does not do
//
// It limits neither memory nor CPU, and isolates machines neither from each other nor from the
// host. A process of a workload that wipes its environment is not found again once agent and
// workload were killed, or where it is not the one that the agent started. It knows no instance
// types and no settings, and says so instead of ignoring them. It needs Linux: it reads /proc.
package process
