package lxd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
	"github.com/leasehold/leasehold/provider/providertest"
	"github.com/leasehold/leasehold/tests/tier"
)

// dying is a way to LXD that ends for good after some requests: the last one arrives, and its
// answer does not. That is what a coordinator leaves that crashes in the middle of a call.
type dying struct {
	to   http.RoundTripper
	left atomic.Int64
}

var errCrashed = errors.New("the coordinator has crashed")

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	left := d.left.Add(-1)
	if left < 0 {
		return nil, errCrashed
	}
	resp, err := d.to.RoundTrip(r)
	if left == 0 && err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errCrashed
	}
	return resp, err
}

// crashAt is a provider that crashes with the answer to its n-th request.
func crashAt(t *testing.T, l *lxdtest.LXD, n int) *Provider {
	p := onReal(t, l, nil)
	d := &dying{to: p.client.http.Transport}
	d.left.Store(int64(n))
	p.client.http = &http.Client{Transport: d}
	return p
}

// everyCrash has a call crash with its requests, one after the other, until it does not need so
// many. By day it leaves out some.
func everyCrash(t *testing.T, l *lxdtest.LXD, prepare func(t *testing.T, instance string),
	call func(p *Provider, instance string) error,
	judge func(t *testing.T, instance string),
) {
	t.Helper()
	const most = 40
	for n := 1; n < most; n += tier.Pick(3, 1) {
		instance := fmt.Sprintf("%s-%d", strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:]), n)
		prepare(t, instance)
		err := call(crashAt(t, l, n), instance)
		judge(t, instance)
		if err == nil {
			return // and what it does after that does not matter to its caller
		}
		if !errors.Is(err, errCrashed) {
			t.Errorf("crash with answer %d: %v", n, err)
		}
	}
	t.Errorf("it needs more than %d requests", most)
}

const crashShard = "sh-crashes"

func crashRequest(instance string) provider.CreateRequest {
	return providertest.Request(crashShard, instance, "local", provider.Template{})
}

// Whatever step of a call a coordinator crashes after, the next one completes the call by repeating
// it.
//
// proves SAFE-8
func crashes(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	listed := func(t *testing.T, instance string) (provider.Machine, bool) {
		t.Helper()
		all, err := p.List(t.Context(), crashShard)
		if err != nil {
			t.Fatal(err)
		}
		var found []provider.Machine
		for _, m := range all {
			if m.Instance == instance {
				found = append(found, m)
			}
		}
		if len(found) > 1 {
			t.Fatalf("%d machines: %+v", len(found), found)
		}
		if len(found) == 0 {
			return provider.Machine{}, false
		}
		return found[0], true
	}
	create := func(t *testing.T, instance string) {
		t.Helper()
		if _, err := p.Create(t.Context(), crashRequest(instance)); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, instance string) {
		t.Helper()
		if err := p.Delete(t.Context(), crashShard, instance); err != nil {
			t.Fatal(err)
		}
	}
	want := func(t *testing.T, instance string, state provider.State) provider.Machine {
		t.Helper()
		m, is := listed(t, instance)
		if !is || m.State != state {
			t.Errorf("%s is listed: %v, as %+v, want %s", instance, is, m, state)
		}
		return m
	}
	t.Run("Create", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, func(*testing.T, string) {},
			func(p *Provider, instance string) error {
				_, err := p.Create(t.Context(), crashRequest(instance))
				return err
			},
			func(t *testing.T, instance string) {
				create(t, instance)
				want(t, instance, provider.StateRunning)
				if mode, document := readDocument(t, p, instance); mode != "0600" || !strings.Contains(document, instance) {
					t.Errorf("%s has the bootstrap document %q with mode %s", instance, document, mode)
				}
				remove(t, instance)
			})
	})
	t.Run("Stop", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, create,
			func(p *Provider, instance string) error {
				return p.Stop(t.Context(), crashShard, instance, 10*time.Second)
			},
			func(t *testing.T, instance string) {
				if err := p.Stop(t.Context(), crashShard, instance, 10*time.Second); err != nil {
					t.Fatal(err)
				}
				want(t, instance, provider.StateStopped)
				remove(t, instance)
			})
	})
	t.Run("Delete", func(t *testing.T) {
		t.Parallel()
		everyCrash(t, l, create,
			func(p *Provider, instance string) error { return p.Delete(t.Context(), crashShard, instance) },
			func(t *testing.T, instance string) {
				remove(t, instance)
				if m, is := listed(t, instance); is {
					t.Errorf("%+v is still there", m)
				}
			})
	})
	t.Run("Restart", func(t *testing.T) {
		t.Parallel()
		var first string
		everyCrash(t, l,
			func(t *testing.T, instance string) {
				create(t, instance)
				first = want(t, instance, provider.StateRunning).BootID
			},
			func(p *Provider, instance string) error { return p.Restart(t.Context(), crashShard, instance, first) },
			func(t *testing.T, instance string) {
				left, _ := listed(t, instance)
				if err := p.Restart(t.Context(), crashShard, instance, first); err != nil {
					t.Fatal(err)
				}
				m := want(t, instance, provider.StateRunning)
				if m.BootID == first || m.BootID == "" {
					t.Errorf("%s has boot %q, and had %q", instance, m.BootID, first)
				}
				if left.State == provider.StateRunning && left.BootID != first && left.BootID != "" && left.BootID != m.BootID {
					t.Errorf("%s was booted twice: %q, %q, %q", instance, first, left.BootID, m.BootID)
				}
				remove(t, instance)
			})
	})
}

// readDocument is the bootstrap document in a container, and its mode.
func readDocument(t *testing.T, p *Provider, instance string) (mode, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	header, data, err := p.client.send(ctx, request{
		method: http.MethodGet, path: path(nameOf(instance)) + "/files", query: map[string][]string{"path": {bootstrapPath}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return header.Get("X-LXD-mode"), string(data)
}
