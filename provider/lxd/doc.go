// Package lxd is a provider whose machines are containers of LXD, or of Incus, which has the same
// REST API. It speaks that API with net/http, over LXD's unix socket or over HTTPS with a client
// certificate.
//
// # What is kept where
//
// A machine is the container ls-<instance>. LXD refuses a second container of that name, and that
// makes Create safe to repeat. All that the provider must remember is in the container's own
// configuration:
//
//	user.leasehold.shard, .instance, .group, .zone   the tags
//	user.leasehold.template      a hash of the template; for people
//	user.leasehold.stop-timeout  how long the machine may take to end in order
//	user.leasehold.step          new, starting, started or failed, with the time
//	user.leasehold.why           why the step failed
//	user.leasehold.stopped       the start, by last_used_at, that a Stop was to end
//	user.leasehold.boot          a start, by last_used_at, and the kernel's boot ID in it
//
// # Invariants
//
//   - A container without the tags of the shard and the instance is neither stopped, restarted,
//     changed nor deleted, whatever its name.
//   - An intent is noted before it is carried out: the step "starting" before each start and
//     restart, "stopped" before each Stop. A container that is down without one has crashed: LXD
//     shows no exit code.
//   - LXD gives each start a new last_used_at. What was noted of one start is not taken for
//     another.
//   - A boot is named by its kernel's boot ID, read from the running container: the agent in it
//     reads the same.
//   - A List is whole: a container that LXD cannot show now, because its member of the cluster is
//     out of reach, is listed as unknown if it was seen before, else the List fails.
//   - Only what LXD says is known. The provider keeps in memory what it has learnt of boots and
//     tags, to ask less, and the console output that it has read, because LXD gives each line of a
//     running container once.
//
// # What it does not do
//
// It makes no virtual machines, no storage pools, no networks and no images. It cannot remember the
// IDs of deleted machines. A container that crashes between the end of its start and the note of it
// is started again by a repeated Create.
package lxd
