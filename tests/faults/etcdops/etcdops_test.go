package etcdops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/leasehold/leasehold/tests/ports"
)

// limit bounds what must not hang. Nothing here takes that long unless it is broken.
const limit = time.Minute

// addresses are for the members. Other suites have other ports.
var addresses = ports.Between(5000, 7000)

// world is an etcd whose members are processes of their own.
type world struct {
	t       *testing.T
	ctx     context.Context
	etcd    Etcd
	data    []Data
	running []*process // nil where one is stopped
}

func newWorld(t *testing.T, members int) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, running: make([]*process, members)}
	dir := t.TempDir()
	for i := range members {
		name := fmt.Sprintf("m%d", i)
		w.etcd = append(w.etcd, Member{Name: name, Client: addresses.FreeAddress(t)})
		w.data = append(w.data, Data{
			Name: name, Dir: filepath.Join(dir, name),
			Peer: "http://" + addresses.FreeAddress(t),
		})
	}
	t.Cleanup(w.stop)
	w.start()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts all members on the data that are there.
func (w *world) start() {
	w.t.Helper()
	var cluster []string
	for _, d := range w.data {
		cluster = append(cluster, d.Name+"="+d.Peer)
	}
	for i := range w.data {
		w.launch(i, embed.ClusterStateFlagNew, strings.Join(cluster, ","))
	}
	w.await("all members to be well", well)
}

func (w *world) launch(i int, state, cluster string) {
	w.t.Helper()
	var err error
	w.running[i], err = launch(role{w.data[i], w.etcd[i].Client, cluster, state})
	w.must(err)
}

// halt kills one member.
func (w *world) halt(i int) {
	if w.running[i] != nil {
		w.running[i].kill()
		w.running[i] = nil
	}
}

func (w *world) stop() {
	for i := range w.running {
		w.halt(i)
	}
}

// client speaks to one member.
func (w *world) client(member int) *clientv3.Client {
	w.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{w.etcd[member].Client}, Logger: zap.NewNop()})
	w.must(err)
	w.t.Cleanup(func() { _ = c.Close() }) // nothing is sent any more
	return c
}

// await looks at how all members are doing until that is as it has to be.
func (w *world) await(what string, condition func([]Status) bool) []Status {
	w.t.Helper()
	var last []Status
	err := until(w.ctx, func() error {
		if last = w.etcd.Status(w.ctx); !condition(last) {
			return &notYetError{errors.New(what)}
		}
		return nil
	})
	if err != nil {
		w.t.Fatalf("%v: %+v", err, last)
	}
	return last
}

func well(all []Status) bool {
	return !slices.ContainsFunc(all,
		func(s Status) bool { return s.Silent != nil || s.Sick != nil || len(s.Alarms) > 0 })
}

func TestTheLeaderIsFoundAndMoved(t *testing.T) {
	w := newWorld(t, 3)
	was, err := w.etcd.Leader(w.ctx)
	w.must(err)
	for _, to := range []int{(was + 1) % 3, (was + 2) % 3, (was + 2) % 3, was} {
		w.must(w.etcd.MoveLeader(w.ctx, to))
		if leads, err := w.etcd.Leader(w.ctx); err != nil || leads != to {
			t.Fatalf("leader is %d after it was moved to %d: %v", leads, to, err)
		}
	}
	w.halt(was)
	now, err := w.etcd.Leader(w.ctx)
	w.must(err)
	if now == was {
		t.Fatalf("%d leads, and is down", now)
	}
	w.await("both that are left to be well, and no other", func(all []Status) bool {
		return all[was].Silent != nil && all[now].Leads && well(slices.Delete(slices.Clone(all), was, was+1))
	})
	w.halt((was + 1) % 3)
	left := (was + 2) % 3
	w.await("the last one to be sick, since it is alone",
		func(all []Status) bool { return all[left].Silent == nil && all[left].Sick != nil })
}

func TestHistoryIsCompactedAndTheFileDefragmented(t *testing.T) {
	w := newWorld(t, 1)
	first, err := w.client(0).Put(w.ctx, "mine", "1")
	w.must(err)
	_, err = w.etcd.Write(w.ctx, 40, 64<<10)
	w.must(err)
	full := w.await("all to be in the file",
		func(all []Status) bool { return well(all) && all[0].InUse >= 40*64<<10 })[0]
	revision, err := w.etcd.Compact(w.ctx, 3)
	w.must(err)
	if want := first.Header.Revision + 43; revision != want || full.Keys != 2 || full.Revision != want-3 {
		t.Fatalf("compacted at %d of %d, and %d keys were there at %d", revision, want, full.Keys, full.Revision)
	}
	if again, err := w.etcd.Compact(w.ctx, 0); err != nil || again != revision {
		t.Fatalf("compacted again at %d: %v", again, err)
	}
	if _, err := w.client(0).Get(w.ctx, "mine", clientv3.WithRev(revision-1)); !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatalf("what was compacted is there: %v", err)
	}
	unused := w.await("what is not in use", func(all []Status) bool {
		_, err := w.etcd.Write(w.ctx, 1, 1) // pages that were given up are free a few writes later
		w.must(err)
		return well(all) && all[0].InUse < full.InUse/2
	})[0]
	if unused.Size < full.Size {
		t.Fatalf("the file shrank by itself: from %d to %d", full.Size, unused.Size)
	}
	w.must(w.etcd.Defragment(w.ctx, 0))
	if after := w.await("the member to be well", well)[0]; after.Size >= full.Size/2 || after.Keys != 2 ||
		after.Revision < unused.Revision {
		t.Fatalf("%+v, and before %+v", after, full)
	}
}

func TestAnAlarmStopsWritesUntilItIsTakenBack(t *testing.T) {
	w := newWorld(t, 3)
	c := w.client(0)
	lease, err := c.Grant(w.ctx, 60)
	w.must(err)
	w.must(w.etcd.RaiseNoSpace(w.ctx, 1))
	w.await("all members to know of the alarm", func(all []Status) bool {
		return !slices.ContainsFunc(all, func(s Status) bool { return !slices.Equal(s.Alarms, []string{"NOSPACE"}) })
	})
	if _, err := w.etcd.Write(w.ctx, 1, 1); !errors.Is(err, rpctypes.ErrGRPCNoSpace) {
		t.Fatalf("written under an alarm: %v", err)
	}
	if _, err := c.Grant(w.ctx, 60); !errors.Is(err, rpctypes.ErrNoSpace) {
		t.Fatalf("a lease was granted under an alarm: %v", err)
	}
	if _, err := c.KeepAliveOnce(w.ctx, lease.ID); err != nil {
		t.Fatalf("a lease is not renewed under an alarm: %v", err)
	}
	w.must(w.etcd.Disarm(w.ctx))
	w.await("no alarm to be left", well)
	_, err = w.etcd.Write(w.ctx, 1, 1)
	w.must(err)
}

func TestAMemberThatLostItsDataIsTakenInAgain(t *testing.T) {
	w := newWorld(t, 3)
	_, err := w.etcd.Write(w.ctx, 5, 10)
	w.must(err)
	before := w.await("all members to be well", well)
	lost, err := w.etcd.Leader(w.ctx)
	w.must(err)
	w.halt(lost)
	w.must(os.RemoveAll(w.data[lost].Dir))
	cluster, err := w.etcd.Readmit(w.ctx, lost)
	w.must(err)
	w.launch(lost, embed.ClusterStateFlagExisting, cluster)
	after := w.await("all members to be well and to know as much", func(all []Status) bool {
		return well(all) && all[lost].Revision == before[lost].Revision
	})
	if after[lost].ID == before[lost].ID || after[lost].Keys != 1 {
		t.Fatalf("the member that lost its data is %+v, and was %+v", after[lost], before[lost])
	}
}

func TestASnapshotTurnsRevisionsBack(t *testing.T) {
	w := newWorld(t, 3)
	c := w.client(0)
	_, err := c.Put(w.ctx, "mine", "before")
	w.must(err)
	file := filepath.Join(t.TempDir(), "snapshot")
	w.must(w.etcd.Save(w.ctx, 0, file))
	saved, err := c.Get(w.ctx, "mine")
	w.must(err)
	_, err = w.etcd.Write(w.ctx, 5, 10)
	w.must(err)
	_, err = c.Put(w.ctx, "mine", "after")
	w.must(err)

	for _, round := range []struct {
		token string
		same  bool
	}{{"", true}, {"another", false}} {
		w.stop()
		w.must(Restore(file, round.token, w.data))
		w.start()
		for i := range w.etcd {
			is, err := w.client(i).Get(w.ctx, "mine")
			w.must(err)
			if len(is.Kvs) != 1 || string(is.Kvs[0].Value) != "before" || is.Header.Revision != saved.Header.Revision ||
				is.Kvs[0].ModRevision != saved.Kvs[0].ModRevision {
				t.Fatalf("restored: %v, and saved: %v", is, saved)
			}
			if same := is.Header.ClusterId == saved.Header.ClusterId; same != round.same {
				t.Fatalf("with the token %q the cluster's ID stays the same: %t", round.token, same)
			}
		}
		again, err := c.Put(w.ctx, "mine", "again")
		w.must(err)
		if again.Header.Revision != saved.Header.Revision+1 {
			t.Fatalf("written at %d, which does not follow %d", again.Header.Revision, saved.Header.Revision)
		}
	}
	if err := w.etcd.Save(w.ctx, 0, filepath.Join(t.TempDir(), "no", "such")); err == nil {
		t.Fatal("saved where nothing can be")
	}
}
