// Package review computes from the journal how groups did in a span of time: availability, causes
// of lost time, times to detect and repair failures, and why machines were created (DAY-5). The
// command line, the page and the API can show it.
//
//	review.go   what a review has
//	walk.go     goes through the journal, entry by entry
//	sum.go      adds up what the walk and the summaries of days have
//	past.go     what happened to instances, as a replay needs it
//	day.go      summaries of days, for when the journal has no entries any more
//	slot.go     when a slot was served, and why not
//	drill.go    what became of a failure on purpose (DAY-6)
//	cause.go    causes, in a few words
//	spread.go   percentiles, and the worst one by name
//
// # Invariants
//
//   - It has no clock and does no I/O: entries, records and times in, a value out.
//   - A slot counts from the first sign that it was wanted until its last instance leaves because
//     the group is smaller, stopped or gone. Instances on demand do not count.
//   - A slot is served while an instance in it is running and not judged dead, lost or failing. An
//     instance that was only suspected, and returned, counts as serving. An instance that became
//     dead or lost counts as not serving since it was first suspected.
//   - The report says what the journal cannot know.
package review
