//go:build nightly

package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/machines"
)

var bareAgents = flag.Int("bare-agents", 500, "how many agents report while hosts of leasehold server are lost")

// bareHost makes a root directory: a Debian of its own, in which nothing is installed but what came
// with it. It is gone with the process that makes it.
const bareHost = `set -e
mkdir -p "$2/upper" "$2/work" "$2/root"
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
cd "$2/root"
mount -t proc proc proc
mount -t tmpfs dev dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for d in null zero full random urandom tty; do
	touch dev/$d
	mount --bind /dev/$d dev/$d
done
mkdir -p ".$3" var/lib/leasehold
mount --bind "$3" ".$3"
mount --bind "$4" var/lib/leasehold
cp "$5" etc/hosts
exec chroot . sh -c 'echo ready; exec sleep infinity'`

// bare gives a host a Debian, and installs the packages there.
func (g *guideHosts) bare(host, debian, packages string) {
	g.t.Helper()
	root, err := os.MkdirTemp(g.dir, "root-"+host+"-") // kept when the test fails
	if err != nil {
		g.t.Fatal(err)
	}
	p := g.start("bare-"+host, g.command("unshare", "--mount", "sh", "-c", bareHost, "sh", debian, root, g.dir,
		filepath.Join(g.dir, host), filepath.Join(g.dir, "hosts")))
	g.await(host+"'s root directory", func() bool {
		if p.HasEnded() {
			g.t.Fatalf("the root of %s (root and overlayfs are needed): %s", host, p.stderr.String())
		}
		return p.stdout.String() == "ready\n"
	})
	g.roots[host] = p.PID()
	install := []string{"dpkg", "--install"}
	for _, name := range []string{"leasehold", "leasehold-agent"} {
		install = append(install, filepath.Join(packages, name+"_0.9.0_"+runtime.GOARCH+".deb"))
	}
	if out, err := g.on(host, install...).CombinedOutput(); err != nil {
		g.t.Fatalf("install the packages on %s: %v: %s", host, err, out)
	}
}

// works are the processes of all workloads, by instance.
func (g *guideHosts) works() map[string]int {
	pids := map[string]int{}
	for _, r := range machines.Residents(g.shards()) {
		if m, err := machines.Read(g.machines, r.Instance); err == nil && m.PID != r.PID {
			pids[r.Instance] = r.PID
		}
	}
	return pids
}

// Three hosts with nothing but Debian become a cluster with a group that heals, by the guide's own
// commands. Then each host in turn is lost with its disk and replaced by a bare one, while many
// agents report: no instance is replaced, and no workload stops.
//
// proves DAY-1, DAY-4, SAFE-1, SAFE-11, SAFE-15
func TestBareHostsUnderManyAgents(t *testing.T) {
	image, err := exec.Command("../../scripts/debian-image.sh").Output()
	if err != nil {
		t.Fatalf("make the image: %v", err)
	}
	g := newGuideHosts(t, "a", "b", "c")
	g.flags = []string{"--machines", g.machines} // they are elsewhere: no host takes machines with it
	if out, err := exec.Command("tar", "-C", g.dir, "-xzf", strings.TrimSpace(string(image)), "rootfs").
		CombinedOutput(); err != nil {
		t.Fatalf("unpack the image: %v: %s", err, out)
	}
	packages := filepath.Join(g.dir, "packages") // where the hosts see it
	if err := os.Rename(buildPackages(t, "v0.9.0", runtime.GOARCH), packages); err != nil {
		t.Fatal(err)
	}
	debian := filepath.Join(g.dir, "rootfs")

	began := time.Now()
	since := func() time.Duration { return time.Since(began).Round(100 * time.Millisecond) }
	for _, n := range g.names {
		g.bare(n, debian, packages)
	}
	t.Logf("packages installed on three hosts after %s", since())
	page := stepsOf(t, filepath.Join("..", "..", "docs", "production.md"))
	lost := slices.IndexFunc(page, func(s step) bool { return replaces.MatchString(s.command) })
	g.follow(page[:lost])
	t.Logf("the guide followed up to its operators after %s", since())
	file := g.file("web.yaml", "name: web\nsize: 3\nprovider: process\nworkload: {run: [sleep, \"100000\"]}\n")
	g.follow([]step{{host: "a", command: "leasehold group apply -f " + file + " --wait"}})
	t.Logf("a healthy group after %s", since())
	victim := slices.Sorted(maps.Keys(g.places()))[0]
	g.signalAgent(victim, syscall.SIGKILL)
	g.await("the replacement of "+victim, func() bool {
		now := g.places()
		_, there := now[victim]
		return len(now) == 3 && !there
	})
	t.Logf("a group that healed after %s", since())

	g.follow([]step{
		{host: "a", command: "leasehold config set create_rate=50"},
		{host: "b", command: fmt.Sprintf("leasehold group scale web %d --wait", *bareAgents)},
	})
	t.Logf("%d agents after %s", *bareAgents, since())
	running, made := g.works(), g.made()
	if len(running) != *bareAgents {
		t.Fatalf("%d workloads run", len(running))
	}
	were := g.places()
	for i, n := range g.names {
		helper := g.names[(i+1)%3]
		began = time.Now()
		steps := []step{forHosts(page[lost], helper, n), forHosts(page[lost+1], helper, n)}
		g.follow(steps[:1]) // loses it before
		gone := time.Now()
		g.bare(n, debian, packages)
		g.follow(steps[1:])
		g.await("all instances with three replicas", func() bool {
			out, err := g.on(helper, "leasehold", "status").Output()
			return err == nil && strings.Contains(string(out), "  replicas 3  ") && maps.Equal(g.places(), were)
		})
		t.Logf("%s lost, replaced by a bare host and all well after %s, %s of it since it was removed", n, since(),
			time.Since(gone).Round(100*time.Millisecond))
		if now := g.works(); !maps.Equal(now, running) {
			t.Errorf("after the loss of %s %d workloads run, %d of them as before", n, len(now), same(now, running))
		}
		if now := g.made(); !slices.Equal(now, made) {
			t.Errorf("after the loss of %s: %d machines were made, and %d before", n, len(now), len(made))
		}
	}
}

// forHosts is a step of the guide in which a replaces b, with other hosts in their places.
func forHosts(s step, helper, lost string) step {
	names := strings.NewReplacer("replace b", "replace "+lost, "--confirm b", "--confirm "+lost,
		"--name b", "--name "+lost, "b removed", lost+" removed", "run on b", "run on "+lost, "ready  b", "ready  "+lost,
		" b:", " "+lost+":", " a:", " "+helper+":")
	out := step{host: map[string]string{"a": helper, "b": lost}[s.host], command: names.Replace(s.command)}
	for _, line := range s.prints {
		out.prints = append(out.prints, names.Replace(line))
	}
	return out
}

// same counts the entries of two maps that are the same.
func same(a, b map[string]int) (n int) {
	for k, v := range a {
		if w, there := b[k]; there && v == w {
			n++
		}
	}
	return n
}
