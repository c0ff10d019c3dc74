package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// Known is what a replica knows of its shard and of the etcd that holds it. It outlives the
// process, and the loss of all of etcd's data (SAFE-15).
type Known struct {
	Schema     int            `json:"schema"`
	Shard      string         `json:"shard"`    // its name
	ShardID    string         `json:"shard_id"` // "" until the replica has served it
	Generation int            `json:"generation"`
	Cluster    string         `json:"cluster"`  // etcd's cluster ID, as etcd prints it
	Revision   store.Revision `json:"revision"` // the highest seen
}

// exchanged returns why the store does not hold what the replica knows; "" if it may. The shard
// must have the ID that the replica knows. A shard of a later generation was put on hold by another
// replica already.
func (k Known) exchanged(shard store.Shard, v store.Vitals) string {
	switch {
	case k.ShardID == "" || shard.Generation > k.Generation:
		return ""
	case shard.Generation < k.Generation:
		return fmt.Sprintf("etcd's data is older than what this replica knows: the shard's record is of generation %d, "+
			"and was of %d", shard.Generation, k.Generation)
	case k.Cluster != "" && k.Cluster != v.ClusterName():
		return fmt.Sprintf("etcd is another cluster (%s) than the one this replica knows (%s)", v.ClusterName(),
			k.Cluster)
	case v.Revision < k.Revision:
		return fmt.Sprintf("etcd's revision went backwards: it is %d, and this replica has seen %d", v.Revision,
			k.Revision)
	default:
		return ""
	}
}

// knowledge is Known in memory and, if there is a file, on disk.
type knowledge struct {
	path string // "": in memory only

	mu  sync.Mutex
	now Known

	saving sync.Mutex // held during slow writes to disk
	saved  Known
	write  func(path string, data []byte) error // replaces a file
}

// openKnowledge reads what the replica knew when it last ended. A file that cannot be read is an
// error: treating it as empty would make an emptied etcd look new.
func openKnowledge(path, shard string) (*knowledge, error) {
	k := &knowledge{
		path: path, now: Known{Schema: store.Schema, Shard: shard},
		write: func(path string, data []byte) error { return durable.Replace(path, data, 0o600) },
	}
	if path == "" {
		return k, nil
	}
	if err := durable.MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &k.now)
	}
	switch {
	case err != nil:
		return nil,
			fmt.Errorf("read what this replica knows of its etcd: %s: %w: if etcd's data is right, remove the file",
				path, err)
	case k.now.Schema > store.Schema:
		return nil, fmt.Errorf("read what this replica knows of its etcd: %s: %w", path, store.ErrSchema)
	case k.now.Shard != shard:
		return nil,
			fmt.Errorf("read what this replica knows of its etcd: %s is of shard %q: name another directory, "+
				"or remove the file", path, k.now.Shard)
	}
	k.saved = k.now
	return k, nil
}

func (k *knowledge) get() Known {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// learn records which shard and etcd the replica serves now.
func (k *knowledge) learn(shard store.Shard, v store.Vitals) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now.ShardID, k.now.Generation, k.now.Cluster, k.now.Revision = shard.ID, shard.Generation, v.ClusterName(),
		v.Revision
}

// seen records a revision of the known cluster.
func (k *knowledge) seen(v store.Vitals) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now.ShardID != "" && k.now.Cluster == v.ClusterName() {
		k.now.Revision = max(k.now.Revision, v.Revision)
	}
}

// save writes changes to disk. Readers do not wait for the disk.
func (k *knowledge) save() error {
	k.saving.Lock()
	defer k.saving.Unlock()
	now := k.get()
	if k.path == "" || now == k.saved {
		return nil
	}
	if err := k.write(k.path, append(store.Encode(now), '\n')); err != nil {
		return err
	}
	k.saved = now
	return nil
}
