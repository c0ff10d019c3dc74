package libvirt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/libvirt/libvirttest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/tests/tier"
)

// dying ends a connection for good after some packets were sent on it: the last one arrives, and
// its answer does not. That is what a coordinator leaves that crashes in the middle of a call.
type dying struct {
	net.Conn
	left *atomic.Int64
}

var errCrashed = errors.New("the coordinator has crashed")

func (d dying) Write(b []byte) (int, error) {
	left := d.left.Add(-1)
	if left < 0 {
		d.Conn.Close()
		return 0, errCrashed
	}
	return d.Conn.Write(b)
}

func (d dying) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.left.Load() <= 0 {
		d.Conn.Close()
		return 0, errCrashed
	}
	return n, err
}

// crashAt is a provider that crashes with the answer to its n-th packet.
func crashAt(t *testing.T, l *libvirttest.Libvirt, n int) (p *Provider, crashed func() bool) {
	p = onReal(t, l, nil)
	left := new(atomic.Int64)
	left.Store(int64(n))
	h := p.hypervisors[0]
	h.dial = func(ctx context.Context) (net.Conn, error) {
		if left.Load() <= 0 {
			return nil, errCrashed
		}
		conn, err := h.dialLibvirtd(ctx)
		return dying{conn, left}, err
	}
	return p, func() bool { return left.Load() <= 0 }
}

const crashShard = "sh-crashes"

// everyCrash has a call crash with its packets, one after the other, until it does not need so
// many. By day it leaves out most. Whatever has happened, the next coordinator completes the call
// by repeating it, and a Delete leaves nothing.
func everyCrash(t *testing.T, l *libvirttest.Libvirt, prepare func(instance string),
	call func(p *Provider, instance string) error,
	judge func(instance string),
) {
	t.Helper()
	p := onReal(t, l, nil)
	const most = 200
	for n := 1; n < most; n += tier.Pick(11, 1) {
		instance := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]), n)
		prepare(instance)
		dying, crashed := crashAt(t, l, n)
		err := call(dying, instance)
		if (err != nil) != crashed() && err != nil {
			t.Errorf("crash with packet %d: %v", n, err)
		}
		judge(instance)
		if err := p.Delete(t.Context(), crashShard, instance); err != nil {
			t.Fatal(err)
		}
		if left, err := remains(l, key{crashShard, instance}.nameOf()); err != nil || left != "" {
			t.Errorf("crash with packet %d: after Delete %s is left; %v", n, left, err)
		}
		if !crashed() {
			return
		}
	}
	t.Errorf("it needs more than %d packets", most)
}

// Whatever step of a call a coordinator crashes after, the next one completes the call by repeating
// it.
//
// proves SAFE-8
func crashes(t *testing.T, l *libvirttest.Libvirt) {
	p := onReal(t, l, nil)
	settings := small()
	settings["data_disk"] = "1GiB"
	create := func(p *Provider, instance string) error {
		req := providertest.Request(crashShard, instance, "a", provider.Template{Settings: settings})
		req.Bootstrap.StopTimeout = "10ms" // nothing in it hears its power button
		_, err := p.Create(t.Context(), req)
		return err
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(t *testing.T, instance string, state provider.State) {
		t.Helper()
		all, err := p.List(t.Context(), crashShard)
		must(err)
		var found []provider.Machine
		for _, m := range all {
			if m.Instance == instance {
				found = append(found, m)
			}
		}
		if len(found) != 1 || found[0].State != state {
			t.Errorf("%s is listed as %+v, want %s", instance, found, state)
		}
	}
	t.Run("Create", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, func(string) {}, create, func(instance string) {
			must(create(p, instance))
			want(t, instance, provider.StateRunning)
			files, err := l.Files(key{crashShard, instance}.nameOf())
			if must(err); len(files) != 4 {
				t.Errorf("%s has the volumes %q, want root, data, seed and console", instance, files)
			}
		})
	})
	t.Run("CreateThenDelete", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, func(string) {}, create, func(string) {}) // a Delete without another Create leaves nothing either
	})
	t.Run("Stop", func(t *testing.T) {
		t.Parallel()
		stop := func(p *Provider, instance string) error {
			return p.Stop(t.Context(), crashShard, instance, time.Millisecond)
		}
		everyCrash(t, l, func(instance string) { must(create(p, instance)) }, stop, func(instance string) {
			must(stop(p, instance))
			want(t, instance, provider.StateStopped)
		})
	})
	t.Run("Delete", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, func(instance string) { must(create(p, instance)) },
			func(p *Provider, instance string) error { return p.Delete(t.Context(), crashShard, instance) }, func(string) {})
	})
	t.Run("Restart", func(t *testing.T) {
		t.Parallel()
		restart := func(p *Provider, instance string) error { return p.Restart(t.Context(), crashShard, instance, "") }
		everyCrash(t, l, func(instance string) {
			must(create(p, instance))
			must(p.Stop(t.Context(), crashShard, instance, 0))
		}, restart, func(instance string) {
			must(restart(p, instance))
			want(t, instance, provider.StateRunning)
		})
	})
}
