// Package ec2 is a provider whose machines are instances of Amazon EC2, or of a cloud that has the
// same Query API. It uses Amazon's SDK.
//
// # What is kept where
//
// Everything that the provider must know later is kept by EC2 itself. An instance and its volumes
// are tagged by the call that makes them, so nothing untagged ever exists:
//
//	leasehold:shard, :instance, :group, :zone   whose machine it is
//	Name                                        the instance's ID, unless the template has a Name
//
// The client token of that call is derived from the shard and the instance. EC2 keeps it with the
// machine, and makes no second one for it.
//
// # Invariants
//
//   - Only a machine that has the tags of the shard and of the instance, and a client token that
//     was derived from them, is stopped, restarted or terminated. Copying a machine copies its
//     tags, never its token.
//   - All attempts to make one machine (types, subnets, repeated calls) share one client token. The
//     next token is used only when EC2 has shown for the time of its consistency that the present
//     one has no machine.
//   - A List has all pages or is an error.
//   - Every request to EC2 passes one gate, which bounds their rate and is closed while EC2
//     throttles.
//   - A terminated machine is listed only if it ended by itself, and never after its Delete.
//
// # What it does not do
//
// It makes no networks, images, keys or roles. EC2 names no boots: a Restart that comes twice
// reboots twice. EC2 forgets a terminated machine after about an hour, and its client token a day
// later; a Create that comes later still makes a machine again.
package ec2
