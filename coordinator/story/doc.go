// Package story derives what is going on in a shard and its groups from their records: one
// derivation for lists, problems, explanations and the page, which only render it. It parses no
// text and does not depend on rule IDs.
//
//	group.go      a group's deviations from its spec, and work in progress
//	known.go      a group's spec and status, as read
//	shard.go      the facts from which a shard's problems follow
//	problems.go   the problems, with the next step; strangers.go and wanting.go have some of them
//	instance.go   an instance, its agent and its checks, line by line; health.go judges it
//	row.go        a group as a row of a table
//	now.go        what is in progress, line by line
//	blocked.go    blocked work, once for all instances that wait for the same reason
package story
