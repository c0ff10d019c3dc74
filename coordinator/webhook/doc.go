// Package webhook sends decisions to programs of the operator's choice (WEB-3).
//
// The leader follows the journal in etcd, by revision, and posts each entry that passes a webhook's
// filters, one after the other. Decisions never wait for it. The position is recorded in etcd every
// few seconds, and a new leader continues from there: an event may be sent twice, with the same ID,
// and none is left out.
//
// A failed event is retried for an hour, also by the next leader. Then it is a dead letter: it is
// recorded, status shows it, and the next delivered event says how many were missed. An event that
// the receiver calls malformed is a dead letter at once.
package webhook
