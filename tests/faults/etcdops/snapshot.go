package etcdops

import (
	"context"
	"fmt"
	"os"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Save writes a member's data, as they are now, into a file, as `etcdctl snapshot save` does. A
// file that is there is replaced.
func (e Etcd) Save(ctx context.Context, member int, file string) error {
	// A member that is frozen is not waited for without end, but data may take as long as they
	// take.
	if st := e[member].status(ctx); st.Silent != nil {
		return fmt.Errorf("save a snapshot of %s: %w", e[member].Name, st.Silent)
	}
	from := clientv3.Config{Endpoints: []string{e[member].Client}, TLS: e[member].TLS}
	if _, err := snapshot.NewV3(zap.NewNop()).Save(ctx, from, file); err != nil {
		return fmt.Errorf("save a snapshot of %s: %w", e[member].Name, err)
	}
	return nil
}

// Data is where a member keeps its data, and where the others find it.
type Data struct {
	Name string
	Dir  string
	Peer string // URL
}

// Restore puts a snapshot in the place of the data of all members, as `etcdutl snapshot restore`
// does without --bump-revision: revisions go on where they were when it was saved, and come a
// second time. No member may run. They are then started as ever.
//
// With an empty token the cluster has the ID that it had when it was made with none, so that its ID
// does not tell what was done. Any other token makes it another one.
func Restore(file, token string, members []Data) error {
	if token == "" {
		token = "etcd-cluster" // etcd's own default
	}
	cluster := ""
	for i, m := range members {
		if i > 0 {
			cluster += ","
		}
		cluster += m.Name + "=" + m.Peer
	}
	for _, m := range members {
		if err := os.RemoveAll(m.Dir); err != nil {
			return fmt.Errorf("restore %s: %w", m.Name, err)
		}
		err := snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
			SnapshotPath: file, Name: m.Name, OutputDataDir: m.Dir, PeerURLs: []string{m.Peer}, InitialCluster: cluster,
			InitialClusterToken: token,
		})
		if err != nil {
			return fmt.Errorf("restore %s: %w", m.Name, err)
		}
	}
	return nil
}

// Empty removes the data of all members. No member may run. They are then started as ever, and make
// a new cluster, of the ID that it had.
func Empty(members []Data) error {
	for _, m := range members {
		if err := os.RemoveAll(m.Dir); err != nil {
			return fmt.Errorf("empty %s: %w", m.Name, err)
		}
	}
	return nil
}
