package story

import (
	"github.com/leasehold/leasehold/store"
)

// Shard is the content of a shard at one revision, as far as its problems follow from it. It has no
// instances: their groups' statuses count them.
type Shard struct {
	Name      string
	Revision  store.Revision
	Shard     store.Versioned[store.Shard]
	Served    store.Versioned[store.Served]
	Backup    store.Versioned[store.Backup]
	Webhooks  []store.Versioned[store.Webhook]
	Etcd      *store.Members // nil: etcd was not asked
	Leader    store.Versioned[store.Leader]
	Leads     bool
	Replicas  []store.Versioned[store.Replica]
	Groups    []Known
	Strangers Strangers
	Spoiled   map[string]error // keys that cannot be decoded, except orders
	Requests  []store.Versioned[store.Request]
	// Unreadable are orders that were written by hand and cannot be decoded.
	Unreadable map[string]error
	Secrets    map[string]store.Secret        // by name; nil: they could not be read
	Lacking    map[string]map[string][]string // by group and cause: the instances that lack a file
}

// Lacks adds the files in a report that are not delivered.
func Lacks(lacking map[string][]string, id string, files []store.FileReport) {
	for _, f := range files {
		if f.State != store.FileDelivered {
			what := lackingFile(f)
			lacking[what] = append(lacking[what], id)
		}
	}
}
