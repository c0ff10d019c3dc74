// Package openstack makes machines that are servers of OpenStack's Nova.
//
//	config.go     what an operator sets; defaults of templates
//	settings.go   what a template may say, and its JSON Schema
//	session.go    tokens, the service catalog, the bound on the rate of requests
//	errors.go     what OpenStack's errors mean (PROV-5)
//	server.go     a server as Nova shows it, and what that means for its machine
//	find.go       the servers of an instance, and all servers of a shard
//	create.go     Create: types in order of preference, networks of the zone
//	resolve.go    names of images, flavors and networks; which network has free addresses
//	end.go        Stop, Delete, Restart, RemoveCopy, Console
//	userdata.go   how the bootstrap document reaches the machine
//
// # Invariants
//
//   - Only a server whose metadata names the shard and the instance is changed or removed. The
//     metadata is part of the call that makes the server, so no server of ours is ever without it.
//   - A server that was listed before is gone only when Nova answers 404 for its ID. A list leaves
//     out what a part of Nova that is down holds.
//   - Server names are not unique: several servers of one instance can come into being, each with
//     the call that made it (Capabilities.Copies). The leader decides which may go (PROV-4).
package openstack
