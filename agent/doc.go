// Package agent is the agent that runs on every machine. It keeps one stream to a replica of its
// shard, reports the machine's state on it, and runs the machine's workload.
//
// [Agent.Run] is one loop around session.Session, which decides. The loop passes events to it,
// carries out its orders in sequence, and sleeps until the next event or the time that the session
// asked for. Streams, the workload and the host's numbers each have goroutines of their own, so
// nothing that blocks there stops the loop.
//
// # Invariants
//
//   - The agent never ends because a stream failed, nor because its state directory cannot be
//     written (DET-14).
//   - Reports are made from memory: making one asks nothing that can hang.
//   - A replica sends a wanted state, not an order: however often it arrives, before or after a
//     restart of the agent, the agent brings it about once. An action is remembered before it is
//     reported, and never before it is done.
//   - Run waits for its goroutines and, unless it is kept, for the workload. It leaves behind those
//     that hang on a disk.
//
// # What it does not do
//
// It never talks to etcd and does not link it; it makes no decision about machines; it restarts a
// workload only when a replica asks for it.
package agent
