package stage

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults/etcdops"
	"github.com/leasehold/leasehold/tests/faults/network"
)

// A network between the members of an etcd can tell them apart in both directions, since each
// speaks from an address of its own and is found at another place than where it listens.
func TestMembersAreCutOffFromEachOther(t *testing.T) {
	programs := &Programs{dir: t.TempDir()}
	if err := programs.buildWrongClock(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Longest)
	defer cancel()
	n := network.New()
	defer n.Close()
	var etcd etcdops.Etcd
	var listens, found, cluster []string
	for i := range 3 {
		name := fmt.Sprintf("m%d", i)
		listens = append(listens, addresses.FreeAddress(t))
		if err := n.Name(MemberSource(i), name); err != nil {
			t.Fatal(err)
		}
		way, err := n.Listen(network.Way{To: name, Leads: listens[i]})
		if err != nil {
			t.Fatal(err)
		}
		etcd = append(etcd, etcdops.Member{Name: name, Client: addresses.FreeAddress(t)})
		found, cluster = append(found, way), append(cluster, name+"=http://"+way)
	}
	for i, m := range etcd {
		cast := exec.Command(programs.Path("cast-wrong-clock"), "etcd", "-name", m.Name, "-dir", t.TempDir(), "-client",
			m.Client, "-peer", listens[i],
			"-advertise-peer", found[i], "-source", MemberSource(i), "-cluster", strings.Join(cluster, ","), "-quota",
			"100000000", "-compact", "1h")
		cast.Stderr = os.Stderr
		stdin, err := cast.StdinPipe() // ends with the test
		if err != nil {
			t.Fatal(err)
		}
		if err := cast.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(cast, stdin) })
	}
	await(ctx, t, etcd, "all being well", func(st etcdops.Status) bool { return st.Silent == nil && st.Sick == nil })
	for _, only := range []network.Direction{network.There, network.Back} {
		alone, err := etcd.Leader(ctx)
		if err != nil {
			t.Fatal(err)
		}
		name := etcd[alone].Name
		others := func(party string) bool { return strings.HasPrefix(party, "m") && party != name }
		lift := n.Impose(network.Rule{From: network.Any(name), To: others, Only: only, Silent: true})
		await(ctx, t, etcd, name+" being alone, and the others not", func(st etcdops.Status) bool {
			return st.Silent == nil && (st.Sick != nil) == (st.Member == name)
		})
		lift()
		await(ctx, t, etcd, "all being well again",
			func(st etcdops.Status) bool { return st.Silent == nil && st.Sick == nil })
	}
}

func end(cast *exec.Cmd, stdin io.Closer) {
	_ = cast.Process.Kill() // it may have ended
	_ = cast.Wait()         // it was killed
	_ = stdin.Close()       // nothing reads it
}

// await waits until all members are as wanted.
func await(ctx context.Context, t *testing.T, etcd etcdops.Etcd, what string, condition func(etcdops.Status) bool) {
	t.Helper()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		as := true
		all := etcd.Status(ctx)
		for _, st := range all {
			as = as && condition(st)
		}
		if as {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waited without success for %s: %+v", what, all)
		}
	}
}
