// Package page renders the page for people: the shard, a group, an instance, the journal. It
// renders what coordinator/view derives.
//
//	page.go      what a page is: fragments that can be updated one by one
//	delta.go     what changes from one page to the next
//	pages.go     which page belongs to a path
//	shard.go, group.go, instance.go, events.go   a page each
//	axis.go      the time axis; past.go the page as it was
//	assets.go    templates, style and script, embedded
//
// # Invariants
//
//   - A page depends on its URL, the cache and the journal alone. etcd is asked for nothing.
//   - All text goes through html/template: names, outputs of checks and journal entries are
//     hostile.
//   - Without scripts each page is whole.
//   - Nothing is rendered while the cache is locked.
package page
