package page

import (
	"slices"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

// Concerns reports whether a change of a record can be seen on the page at a path. Changes that it
// misses, such as the load of a machine, are shown with the next heartbeat.
func Concerns(path string, change cache.Change) bool {
	if change.Same {
		return false
	}
	switch change.Kind {
	case store.KindLeader, store.KindShard, store.KindReplicas:
		return true
	case store.KindGroups, store.KindStatic, store.KindStatus, store.KindRequests:
	case store.KindInstances, store.KindAlive, store.KindReports, store.KindSlots:
		if path == "/" {
			return false
		}
	default:
		return false
	}
	kind, name, _ := placeOf(path)
	switch {
	case path == "/":
		return true
	case kind == "g":
		return change.Group == name
	case kind == "i":
		return change.Name == name || slices.Contains([]string{store.KindStatus, store.KindRequests}, change.Kind)
	default:
		return false // the journal is watched separately
	}
}
