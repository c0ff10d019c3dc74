// Package membership decides which changes of etcd's members are safe for a cluster: functions of
// its members and of which of them answer, without I/O.
//
// A change is refused if the members that answer afterwards would be fewer than the majority that
// etcd needs then. A host is added as a learner, which counts for no majority, and promoted once it
// has caught up.
package membership
