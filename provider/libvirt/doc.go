// Package libvirt is a provider whose machines are QEMU domains of libvirt, on one hypervisor or on
// several: each zone is one. It speaks libvirt's protocol over the unix socket or over TLS.
//
// # What is kept where
//
// A machine is the domain ls-<hash of the shard>-<instance>. libvirt refuses to define a second
// domain of that name, and that makes Create safe to repeat. All that the provider must remember is
// in the domain's metadata, in its persistent definition: the tags, how far the last start has
// come, and whether a Stop was to end it (see record). Volumes have the domain's name and a suffix,
// in one storage pool; the domain is defined before the first is made, and undefined after the last
// is gone.
//
// # Invariants
//
//   - A domain without the shard and the instance in its metadata is neither stopped, restarted,
//     changed nor deleted, whatever its name.
//   - A volume is deleted with the domain that it belongs to by its whole name, or after this
//     process has undefined that domain. The absence of a domain alone deletes nothing.
//   - An intent is noted before it is carried out: the step "starting" or "restarting" before each
//     start, "stopped" before each Stop. A domain that is down without one has crashed.
//   - A List is whole: a hypervisor that does not answer makes it an error. It is never a part.
//   - An instance stays in its zone, so that no two hypervisors make a domain for one.
//   - Only what libvirt says is known. The provider keeps in memory where an instance was seen last
//     and its address, to ask less.
//
// # What it does not do
//
// libvirt knows no boots: a domain that is reset from within stays the same one. So boots are not
// named, and a Restart that comes twice restarts twice. It makes no pools, no networks and no
// images, moves no machine, and cannot remember the IDs of deleted machines.
package libvirt
