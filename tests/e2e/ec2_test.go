package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/ec2/ec2test"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/machines"
)

// region is a server of EC2's API whose machines are agents on this host. They get what cloud-init
// would write from their user data.
type region struct {
	*ec2test.Server
	dir, endpoint string
}

const (
	regionImage  = "ami-0123456789abcdef0"
	regionSubnet = "subnet-0123456789abcdef0"
)

func newRegion(t *testing.T, dir string) *region {
	t.Helper()
	r := &region{dir: filepath.Join(dir, "region")}
	r.Server = ec2test.New(ec2test.Config{
		Region: "test-1", Keys: map[string]string{"AKIATEST": "s3cret/"}, Images: map[string]string{regionImage: "/dev/xvda"},
		Subnets: map[string]ec2test.Subnet{regionSubnet: {Zone: "test-1a", Free: 100}}, Types: map[string]int{"m7g.large": 2},
		Lag: 200 * time.Millisecond, TagLag: 400 * time.Millisecond, BootTime: 100 * time.Millisecond,
		StopTime: 100 * time.Millisecond, Run: func(ctx context.Context, b ec2test.Boot) { r.run(ctx, t, b) },
	})
	over := httptest.NewServer(r.Server)
	r.endpoint = over.URL
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		r.Close()
		machines.KillMarked(machines.EnvTest, r.dir+"/")
	})
	return r
}

// pidFile has the process of a machine's agent.
func (r *region) pidFile(id string) string { return filepath.Join(r.dir, id, "pid") }

// run is one boot of a machine: its agent, until that or the machine ends.
func (r *region) run(ctx context.Context, t *testing.T, b ec2test.Boot) {
	dir := filepath.Join(r.dir, b.ID)
	document, err := ec2test.BootstrapOf(b.UserData)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	path := filepath.Join(dir, "bootstrap.json")
	if err == nil {
		err = os.WriteFile(path, document, 0o600)
	}
	if err != nil {
		t.Errorf("machine %s: %v", b.ID, err)
		return
	}
	runtime.LockOSThread() // the kernel ends the agent with the thread that started it
	defer runtime.UnlockOSThread()
	agent := exec.Command(bin("leasehold-agent"), "--bootstrap", path, "--state-dir", filepath.Join(dir, "state"))
	agent.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LEASEHOLD_BOOT_ID=" + fmt.Sprintf("%s-%d", b.ID, b.Number),
		machines.EnvTest + "=" + r.dir + "/" + b.ID,
	}
	agent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := agent.Start(); err != nil {
		t.Errorf("machine %s: %v", b.ID, err)
		return
	}
	entry := fmt.Sprintf("program %d\n", agent.Process.Pid)
	fmt.Fprint(undertaker, entry)
	if err := os.WriteFile(r.pidFile(b.ID), fmt.Append(nil, agent.Process.Pid), 0o600); err != nil {
		t.Error(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = agent.Wait() // however it ended
	}()
	select {
	case <-ctx.Done(): // the power goes
		_ = agent.Process.Kill()
		<-ended
	case <-ended:
	}
	machines.KillMarked(machines.EnvTest, r.dir+"/"+b.ID)
	fmt.Fprint(undertaker, "ended "+entry)
}

// A group of machines of EC2 comes up once the shard has the secrets, heals when a machine ends, is
// changed, and leaves nothing when it is deleted.
//
// proves PROV-5, PROV-8, SEC-6
func TestAGroupOnEC2(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	r := newRegion(t, l.dir)
	write := func(name, text string) string {
		path := filepath.Join(l.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	providers := write("providers.yaml", fmt.Sprintf(`providers:
  aws:
    ec2:
      region: test-1
      endpoint: %s
      secrets: {access_key_id: aws-id, secret_access_key: aws-key}
      zones: {test-1a: {subnets: [%s]}}
      image: %s
      calls_per_minute: 6000
      consistency: 2s
      call_timeout: 30s
      poll_interval: 100ms
`, r.endpoint, regionSubnet, regionImage))
	group := func(size int, team string) string {
		return write("web.yaml", fmt.Sprintf(`name: web
size: %d
provider: aws
template:
  instance_type: m7g.large
  tags: {team: %s}
  settings: {root_disk: {gib: 8}, image: %s}
workload: {run: [sleep, infinity]}
`, size, team, regionImage))
	}
	l.startDev("--listen", l.address(), "--providers", providers, "--group", group(3, "web"))
	l.follow()
	l.must("secret", "set", "aws-id", "--from-file", write("id", "AKIATEST"))
	l.must("secret", "set", "aws-key", "--from-file", write("key", "s3cret/"))
	l.await("the group", func() bool { return l.h.complete("web", 3) })

	victim := l.h.wanted("web")[0]
	var pid int
	for _, ref := range r.Live() {
		tags, _ := r.Tags(ref)
		if tags["leasehold:instance"] != victim {
			continue
		}
		text, err := os.ReadFile(r.pidFile(ref))
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		if err != nil || tags["team"] != "web" || tags["leasehold:group"] != "web" {
			t.Fatalf("machine %s has the tags %v; %v", ref, tags, err)
		}
	}
	before := l.caughtUp()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	dead := l.awaitEntry("the replacement being asked for", before,
		func(n noted) bool { return n.Instance == victim && n.To == store.Deleting })
	if dead.Rule != "DET-4" {
		t.Errorf("not replaced because it was dead: %s", dead)
	}
	l.await("the group being healed",
		func() bool { return l.h.complete("web", 3) && !slices.Contains(l.h.wanted("web"), victim) })

	ids := l.h.wanted("web")
	l.must("group", "apply", "-f", group(2, "shop"), "--confirm", "web", "--wait")
	l.await("the change", func() bool {
		return l.h.complete("web", 2) && !slices.ContainsFunc(ids, func(id string) bool {
			return slices.Contains(l.h.wanted("web"), id)
		})
	})
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	if live := r.Live(); len(live) > 0 {
		t.Errorf("machines are left: %v", live)
	}
	if doubles := r.Doubles(); len(doubles) > 0 {
		t.Errorf("instances that had two machines: %v", doubles)
	}
	if text := l.must("provider", "show", "aws"); !strings.Contains(text, "launch_template") {
		t.Errorf("provider show does not print the schema:\n%s", text)
	}
	l.dev.signal(syscall.SIGINT)
	l.waitEnd(l.dev)
}
