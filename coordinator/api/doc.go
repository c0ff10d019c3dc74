// Package api serves /api/v1 to programs: what the page shows, as JSON, and edits of groups and
// orders as the commands make them.
//
//	handler.go    what there is, and who may do what
//	read.go       reads, from memory
//	watch.go      the same as server-sent events
//	edit.go       edits and orders: preconditions, bodies, answers
//	login.go      users of etcd: how often a password may be wrong
//	document.go   the documents; openapi.go describes them
//
// # Invariants
//
//   - A read costs etcd nothing, except that it has to tell whether it knows a user.
//   - An edit is made with the etcd user that the request names, never with the replica's: etcd's
//     roles decide. An edit of a group names the revision that it is based on.
//   - No credential is logged, kept or shown. No cookie is read, and no page of another origin is
//     answered: see coordinator/web.
package api
