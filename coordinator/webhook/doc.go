// Package webhook sends decisions to programs of the operator's choice (WEB-3).
//
// The leader follows the journal in etcd, by revision, and posts each entry that passes a webhook's
// filters, one after the other. It does so beside the decisions, which never wait for it. What was
// delivered is recorded in etcd every few seconds: a new leader goes on from there, so that an
// event may come twice, with the same ID, and none is left out.
//
// An event that fails is tried again for an hour, also by the next leader. Then it is a dead
// letter: it is recorded, status shows it, and the next event that is delivered says how many were
// missed. An event that the receiver calls malformed is a dead letter at once.
package webhook
