// Package web is the read-only HTTP side of a replica: the page for people, whether the replica is
// alive and ready, and what can be measured.
//
//	web.go          the server: where it listens, how long anything may take
//	guard.go        which requests are answered at all, and the headers of every answer
//	people.go       the pages for people; package page renders them
//	live.go         sends readers what changes on a page
//	crowd.go        how many connections there may be, and which one is closed for a new one
//	health.go       /livez, /readyz
//	metrics.go      what is counted where it happens
//	gauges.go       what is read from the cache on request
//	requests.go     how etcd answers, measured around the store
//
// # Invariants
//
//   - Nothing is changed by any request: GET and HEAD, no bodies.
//   - Beyond loopback there is TLS, and clients without credentials see no more than whether the
//     replica is alive and ready.
//   - A certificate of the agents' authority opens nothing here.
//   - The listener, its connections and its time-outs are its own: whatever is done to it, agents
//     are served.
//   - A refusal tells a client nothing about the replica or its shard.
//   - Only this package uses Prometheus' library. Other packages report what is counted through an
//     interface that they define.
package web
