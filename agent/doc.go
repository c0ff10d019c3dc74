// Package agent is what runs on every machine: it keeps one stream to a replica of its shard,
// reports over it how the machine is, and runs the machine's workload.
//
// [Agent.Run] is one loop around session.Session, which decides; the loop tells it what happened,
// carries out its orders in the order given, and sleeps until the next event or the time it asked
// for. Streams, the workload and the host's numbers each have goroutines of their own, so nothing
// that blocks there stops the loop.
//
// # Invariants
//
//   - The agent never ends because a stream failed, nor because its state directory cannot be
//     written (DET-14).
//   - Reports are made from what is in memory: nothing that can hang is asked for one.
//   - What a replica wants of it is a state, not an order: told any number of times, before or
//     after a restart of the agent, it is brought about once. What was done is remembered before it
//     is reported, and never before it was done.
//   - Run returns only when every goroutine of it, and the workload unless it is to be kept, is
//     gone.
//
// # What it does not do
//
// It never speaks to etcd and links none of it; it decides nothing about machines; it restarts no
// workload unless it is told to.
package agent
