// Package top shows a shard live in a terminal, as the page shows it in a browser: the shard, a
// group, an instance, the journal. It renders what coordinator/view derives, and derives nothing
// itself.
//
//	top.go      runs the program in a terminal
//	follow.go   has the shard in memory, and says when something changed
//	model.go    what is open, what is chosen, and what keys do
//	screen.go   lines on a screen: wrapping, tables, styles
//	shard.go, group.go, instance.go, events.go, help.go   a place each, as lines
//
// # Invariants
//
//   - Nothing is written to etcd.
//   - Control characters of names, outputs and journal entries reach no terminal.
//   - Colour is never alone: each state has a sign and a word.
//   - The terminal is restored however the program ends.
package top
