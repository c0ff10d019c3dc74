// Package source answers questions for numbers from outside; see package query.
//
//	set.go         the sources of a replica, with bounds on time and number
//	config.go      what an operator sets, in the replica's own configuration (SEC-7)
//	http.go        requests with bounds, and a value from a JSON document
//	prometheus.go  the value of a Prometheus query
//	program.go     a program of the user's
//
// # Invariants
//
//   - A request follows no redirect and reaches no link-local address.
//   - Answers are read up to a limit. An answer that hangs or is too large affects only its own
//     request.
//   - Errors hold neither URLs nor tokens: they reach the journal.
package source
