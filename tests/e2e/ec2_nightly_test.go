//go:build nightly

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider/ec2/ec2test"
)

// run is one boot of a machine of EC2's API: its guest, until that or the machine ends.
func (h *cloudHost) run(ctx context.Context, b ec2test.Boot) {
	fail := func(err error) {
		if err != nil && ctx.Err() == nil {
			h.t.Errorf("guest of machine %s: %v", b.ID, err)
		}
	}
	if b.Number == 1 {
		fail(h.boot(b.ID, b.UserData))
	} else {
		fail(h.set(b.ID, "start", false))
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for h.state(b.ID) != "Stopped" {
		select {
		case <-ctx.Done():
			if err := h.end(b.ID); err != nil {
				h.t.Errorf("end the guest of machine %s: %v", b.ID, err)
			}
			return
		case <-tick.C:
		}
	}
}

// A newcomer has an account of EC2's API, as our server plays it, and the page alone. Each
// machine's guest runs Debian's own cloud-init with the machine's user data, compressed as they
// are, by which it fetches the agent. Then a guest crashes, one hangs, and a machine is terminated
// behind Leasehold's back.
//
// proves PROV-5, PROV-7, PROV-8, SEC-6
func TestFromEC2sPageToAHealingGroup(t *testing.T) {
	p := newCloudPage(t, "ec2")
	h := newCloudHost(t, p.guideHosts)
	account := ec2test.New(ec2test.Config{
		Region: "eu-west-1", Keys: map[string]string{"AKIATEST": "s3cret/"},
		Images:  map[string]string{regionImage: "/dev/xvda"},
		Subnets: map[string]ec2test.Subnet{regionSubnet: {Zone: "eu-west-1a", Free: 100}},
		Types:   map[string]int{"t3.small": 2}, Lag: time.Second, TagLag: 2 * time.Second,
		BootTime: time.Second, StopTime: time.Second, Run: h.run,
	})
	l, err := net.Listen("tcp", net.JoinHostPort(cloudAddress, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: account, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() {
		server.Close()
		account.Close()
		for _, machine := range h.guests() {
			if err := h.remove(machine); err != nil {
				t.Error(err)
			}
		}
	})
	providers, group := filepath.Join(p.dir, "providers.yaml"), filepath.Join(p.dir, "web.yaml")
	p.adapt(map[string]string{
		"region: eu-west-1\n":           "region: eu-west-1\n      endpoint: http://" + l.Addr().String() + "\n",
		"/etc/leasehold/providers.yaml": providers,
		"-f web.yaml":                   "-f " + group,
		"10.0.0.5":                      "198.51.100.1",
		"--agents bin":                  "--agents " + p.agentsToServe(),
		"leasehold secret set aws-id":   "printf %s AKIATEST | leasehold secret set aws-id",
		"leasehold secret set aws-key":  "printf %s s3cret/ | leasehold secret set aws-key",
	})
	p.began = time.Now()
	p.write(0, providers)
	p.write(1, group)
	p.follow(p.upTo("leasehold group apply"))
	p.applied()

	machineOf := func(instance string) string {
		for _, id := range account.Live() {
			if tags, _ := account.Tags(id); tags["leasehold:instance"] == instance {
				return id
			}
		}
		t.Fatalf("there is no machine of %s", instance)
		return ""
	}
	p.heals("crashed", "DET-4", func(id string) { h.crash(machineOf(id)) })
	p.heals("hung", "HEAL-2", func(id string) { h.freeze(machineOf(id)) })
	p.heals("terminated in the console", "DET-4", func(id string) {
		if err := account.Terminate(machineOf(id)); err != nil {
			t.Fatal(err)
		}
	})
	p.ends(func() (left []string) {
		for _, id := range account.Live() {
			left = append(left, fmt.Sprintf("machine %s", id))
		}
		return left
	})
	if doubles := account.Doubles(); len(doubles) > 0 {
		t.Errorf("instances that had two machines: %v", doubles)
	}
}
