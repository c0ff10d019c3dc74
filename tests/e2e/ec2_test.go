package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/ec2/ec2test"
)

// region is a server of EC2's API whose machines are agents on this host.
type region struct {
	*ec2test.Server
	guests
	endpoint string
}

const (
	regionImage  = "ami-0123456789abcdef0"
	regionSubnet = "subnet-0123456789abcdef0"
)

func newRegion(t *testing.T, dir string, spots int) *region {
	t.Helper()
	r := &region{guests: guests{filepath.Join(dir, "region")}}
	r.Server = ec2test.New(ec2test.Config{
		Region: "test-1", Keys: map[string]string{"AKIATEST": "s3cret/"}, Images: map[string]string{regionImage: "/dev/xvda"},
		Subnets: map[string]ec2test.Subnet{regionSubnet: {Zone: "test-1a", Free: 100}}, Types: map[string]int{"m7g.large": 2},
		Spots: spots,
		Lag:   200 * time.Millisecond, TagLag: 400 * time.Millisecond, BootTime: 100 * time.Millisecond,
		StopTime: 100 * time.Millisecond, Run: func(ctx context.Context, b ec2test.Boot) { r.run(ctx, t, b) },
	})
	over := httptest.NewServer(r.Server)
	r.endpoint = over.URL
	t.Cleanup(func() {
		over.CloseClientConnections()
		over.Close()
		r.Close()
		r.remove()
	})
	return r
}

// run is one boot of a machine: its agent, until that or the machine ends.
func (r *region) run(ctx context.Context, t *testing.T, b ec2test.Boot) {
	document, err := ec2test.BootstrapOf(b.UserData)
	if err != nil {
		t.Errorf("machine %s: %v", b.ID, err)
		return
	}
	one, err := r.boot(b.ID, document, fmt.Sprintf("LEASEHOLD_BOOT_ID=%s-%d", b.ID, b.Number))
	if err != nil {
		t.Errorf("machine %s: %v", b.ID, err)
		return
	}
	select {
	case <-ctx.Done(): // the power goes
		_ = one.end(syscall.SIGKILL)
	case <-one.ended:
	}
}

// providers writes the file that has this region as provider aws.
func (r *region) providers(l *laptop) string {
	return l.file("providers.yaml", fmt.Sprintf(`providers:
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
}

// keys gives the shard the secrets of the region's account.
func (r *region) keys(l *laptop) {
	l.must("secret", "set", "aws-id", "--from-file", l.file("id", "AKIATEST"))
	l.must("secret", "set", "aws-key", "--from-file", l.file("key", "s3cret/"))
}

// A group of machines of EC2 comes up once the shard has the secrets, heals when a machine ends, is
// changed, and leaves nothing when it is deleted.
//
// proves PROV-5, PROV-8, SEC-6
func TestAGroupOnEC2(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	r := newRegion(t, l.dir, 0)
	group := func(size int, team string) string {
		return l.file("web.yaml", fmt.Sprintf(`name: web
size: %d
provider: aws
template:
  instance_type: m7g.large
  tags: {team: %s}
  settings: {root_disk: {gib: 8}, image: %s}
workload: {run: [sleep, infinity]}
`, size, team, regionImage))
	}
	l.startDev("--listen", l.address(), "--providers", r.providers(l), "--group", group(3, "web"))
	l.follow()
	r.keys(l)
	l.await("the group", func() bool { return l.h.complete("web", 3) })

	victim := l.h.wanted("web")[0]
	var pid int
	for _, ref := range r.Live() {
		tags, _ := r.Tags(ref)
		if tags["leasehold:instance"] != victim {
			continue
		}
		pid = l.pidIn(r.pidFile(ref))
		if tags["team"] != "web" || tags["leasehold:group"] != "web" {
			t.Fatalf("machine %s has the tags %v", ref, tags)
		}
	}
	l.healsCrash("web", victim, pid, 3)

	l.recreates("web", group(2, "shop"), 2)
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	if live := r.Live(); len(live) > 0 {
		t.Errorf("machines are left: %v", live)
	}
	if doubles := r.Doubles(); len(doubles) > 0 {
		t.Errorf("instances that had two machines: %v", doubles)
	}
	l.showsSchema("aws", "launch_template")
	l.quit()
}

// Where an account may have no more Spot machines, the others are made on demand, and that is
// shown.
//
// proves SPOT-4, PROV-5
func TestAGroupOnEC2FallsBackToOnDemand(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	r := newRegion(t, l.dir, 1)
	group := l.file("web.yaml", `name: web
size: 3
provider: aws
template: {instance_type: m7g.large}
workload: {run: [sleep, infinity]}
capacity: {spot: 100, fallback_after: 0s}
`)
	l.startDev("--listen", l.address(), "--providers", r.providers(l), "--group", group)
	l.follow()
	r.keys(l)
	l.await("the group", func() bool { return l.h.complete("web", 3) })
	const wanted = "capacity: 1 of 3 wanted spot machines, 2 on demand, 2 of them because there was no spot capacity"
	var shown string
	l.await("the shares in the status", func() bool {
		shown = l.must("group", "show", "web")
		return strings.Contains(shown, wanted)
	})
	if status := l.must("status"); !strings.Contains(status, "2 instances are on demand because there was no spot "+
		"capacity") ||
		!strings.Contains(status, "spot is tried again in") {
		t.Errorf("status does not say it:\n%s", status)
	}
	if doubles := r.Doubles(); len(doubles) > 0 {
		t.Errorf("instances that had two machines: %v", doubles)
	}
	l.must("group", "delete", "web", "--confirm", "web", "--wait")
	l.quit()
}
