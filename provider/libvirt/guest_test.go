package libvirt

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
)

// bootTime is how long an emulated guest may take to boot on a host that has other work.
const bootTime = 40 * time.Second

// A guest boots from a kernel alone, says so on its console, and ends in order when it is asked to.
func guestEndsInOrder(t *testing.T) {
	l := startReal(t)
	if err := l.Boot(nil); err != nil {
		t.Fatal(err)
	}
	p := onReal(t, l, func(c *Config) { c.Image, c.Networks, c.UserNetwork = "", nil, true })
	const shard = "sh-guest"
	req := providertest.Request(shard, "guest-1", "a", provider.Template{Settings: map[string]any{
		"kernel": "kernel", "initrd": "initrd", "cmdline": "console=ttyS0 panic=-1 quiet", "memory": "256MiB",
	}})
	begun := time.Now()
	if _, err := p.Create(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	console := ""
	for over := time.Now().Add(bootTime); !strings.Contains(console, "guest: booted"); <-time.After(100 * time.Millisecond) {
		text, err := p.Console(t.Context(), shard, "guest-1")
		if console = string(text); err != nil || time.Now().After(over) {
			t.Fatalf("it has not booted: %v\n%s", err, console)
		}
	}
	t.Logf("booted after %s", time.Since(begun))
	begun = time.Now()
	if err := p.Stop(t.Context(), shard, "guest-1", bootTime); err != nil {
		t.Fatal(err)
	}
	t.Logf("ended after %s", time.Since(begun))
	all, err := p.List(t.Context(), shard)
	if err != nil || len(all) != 1 || all[0].State != provider.StateStopped {
		t.Errorf("%+v, %v", all, err)
	}
	text, err := p.Console(t.Context(), shard, "guest-1")
	if err != nil || !strings.Contains(string(text), "the power button") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := p.Delete(t.Context(), shard, "guest-1"); err != nil {
		t.Error(err)
	}
}

func TestGuestTmp(t *testing.T) { guestEndsInOrder(t) }
