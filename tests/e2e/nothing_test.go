package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// plainMachine is the first process of a machine that has the file system of this one, in a layer
// of its own, no agent, and nothing but its user data.
const plainMachine = `
mount -t tmpfs none "$LEASEHOLD_WORK_DIR/layers"
cd "$LEASEHOLD_WORK_DIR/layers"
mkdir upper work root
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root
mount -t proc proc root/proc
mount --bind /dev root/dev
cp "$LEASEHOLD_WORK_DIR/user-data" root/user-data
exec chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LEASEHOLD_BOOT_ID="$LEASEHOLD_BOOT_ID" \
	sh -c 'sh /user-data; exec tail -f /dev/null'
`

// A machine needs nothing but its user data: it fetches the agent from a coordinator, whose
// certificate and whose program it checks, joins with the token that it was given, and is healthy.
// A coordinator that serves no agent is none to fetch from.
//
// proves PROV-7
func TestAMachineFromNothing(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("machines with a file system of their own are made by root: run the tests as root")
	}
	c := newCluster(t)
	example, err := filepath.Abs("../../docs/providers/examples/processes.sh")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agents := c.agentsToServe()
	first := write("machine.sh", "#!/bin/sh\nset -e\nmkdir -p \"$LEASEHOLD_WORK_DIR/layers\"\n"+
		"exec unshare --mount --pid --fork --kill-child sh -ec '"+strings.ReplaceAll(plainMachine, "'", `'\''`)+"'\n")
	providers := write("providers.yaml", fmt.Sprintf(
		"providers: {plain: {exec: {command: [%s], user: root, config: {dir: %s, agent: [%s], zones: [a]}}}}\n",
		example, filepath.Join(c.dir, "plain"), first))
	for id, more := range map[string][]string{
		"a": nil,
		"b": {"--downloads", addresses.FreeAddress(t), "--agents", agents},
		"c": {"--downloads", addresses.FreeAddress(t), "--agents", agents},
	} {
		c.replicas[id] = c.start(id, c.command(bin("leasehold"), append([]string{
			"coordinator", "--id", id,
			"--listen", addresses.FreeAddress(t), "--providers", providers, "--state-dir", filepath.Join(c.dir, "known-"+id),
			"--session-ttl", sessionTTL.String(), "--http", "off", "--log-level", "debug",
		}, more...)...))
	}
	c.await("all coordinators", func() bool {
		return c.h.leader() != "" && len(currentOf[store.Replica](c.h, store.KindReplicas)) == 3
	})
	group := write("web.yaml", fmt.Sprintf(
		"name: web\nsize: 2\nprovider: plain\nworkload: {run: [sleep, infinity]}\nreport: {interval: "+
			"%s, lease_ttl: %s}\nstop_timeout: 2s\n",
		interval, leaseTTL))
	c.must("group", "apply", "-f", group, "--wait")
	c.awaitComplete("web", 2)
	left, err := filepath.Glob(filepath.Join(c.dir, "plain", "machines", "*", "user-data"))
	if err != nil || len(left) != 2 {
		t.Errorf("user data: %v, %v", left, err)
	}
	c.must("group", "delete", "web", "--confirm", "web", "--wait")
}

// agentsToServe makes a directory with the agent, as coordinators serve it.
func (w *world) agentsToServe() string {
	w.t.Helper()
	dir := filepath.Join(w.dir, "agents")
	program, err := os.ReadFile(bin("leasehold-agent"))
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "leasehold-agent-linux-"+runtime.GOARCH), program, 0o700)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return dir
}
