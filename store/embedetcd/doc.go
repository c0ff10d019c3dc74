// Package embedetcd runs a single etcd member inside this process, for a machine on which etcd
// does not run as a service of its own: `leasehold dev`, a shard on one machine, and tests.
//
// # Invariants
//
//   - One process at a time has a data directory. A second one fails at once.
//   - The same data directory always comes back as the same member with the same data, on whatever
//     client port.
//   - Nothing listens but the client port: a single member has no peers to listen for.
//   - After Close the port and the data directory are free.
//
// # What it does not do
//
// It makes no cluster of several members and knows neither users nor certificates: a client that
// reaches the port can read and write everything, so it belongs on a loopback address.
package embedetcd
