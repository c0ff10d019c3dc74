// Package haproxy has HAProxy processes send traffic to instances, through their runtime sockets.
// docs/balancers/haproxy.md is the page for users.
//
//	config.go    what an operator sets
//	socket.go    one command on one socket, bounded in time and output
//	state.go     what a backend has: show servers state and show stat, read strictly
//	members.go   Add, Drain and Remove of servers that are made and deleted at run time
//	slots.go     the same with the slots of a server-template
//	haproxy.go   the calls, over all sockets
//
// # Two ways
//
// Without Config.Slots a member is a server that is added at run time (HAProxy 2.6 and later). Its
// name is lh:SHARD:BALANCER:INSTANCE, so that it says whose it is: to a coordinator that has just
// started, to another shard, and to people who look at statistics. Such servers are gone after a
// reload, and the next pass puts them back.
//
// With Config.Slots a member is a slot of a server-template, which survives a reload with a
// server-state-file. A slot's name is fixed and HAProxy stores nothing beside it that survives a
// reload (maps and stick tables do not; a description cannot be set at run time). So a slot is
// known by what it sends traffic to: its address and port. The template belongs to one balancer of
// one shard, but a slot at an address that is not recorded is still left alone, because nothing
// proves that it is ours. A slot in maintenance is free. A slot that Remove frees gets the address
// 0.0.0.0 port 0, so that nothing old is enabled with it.
//
// # Invariants
//
//   - A change counts when it was read back. What HAProxy says to a command differs from version to
//     version and is only passed on in errors.
//   - A server counts as up only once a check has passed since it was added: HAProxy itself begins
//     with "up" before the first check. That is why the default fall of 3 is required to be at
//     least 2: with 1 the two look alike.
//   - A List of a process is complete: an answer that ends without its empty line was cut off.
package haproxy
