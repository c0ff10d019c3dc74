//go:build nightly

package openstack

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
	"github.com/leasehold/leasehold/provider/providertest"
)

// startReal starts Keystone, Glance, Placement and Nova of Debian (scripts/openstack.sh), and
// returns where they are: their sockets have one port here, with a path for each.
func startReal(t *testing.T) string {
	t.Helper()
	cloud, err := openstacktest.StartReal()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cloud.Stop(); err != nil {
			t.Error(err)
		}
	})
	mux := http.NewServeMux()
	for path, service := range map[string]string{"/identity/": "keystone", "/compute/": "nova", "/image/": "glance"} {
		transport := &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return cloud.Dial(ctx, service)
			},
		}
		t.Cleanup(transport.CloseIdleConnections)
		mux.Handle(path, http.StripPrefix(strings.TrimSuffix(path, "/"), &httputil.ReverseProxy{
			Transport: transport,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = "http", "openstack"
			},
		}))
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// The contract on a real Nova. Its machines are of its fake driver: nothing runs in them, so
// nothing can be ended behind its back.
//
// proves PROV-1
func TestOnARealOpenStack(t *testing.T) {
	url := startReal(t)
	p, err := New(Config{
		AuthURL: url + "/identity/v3", User: "leasehold", Project: "machines", PasswordSecret: "openstack",
		Endpoints: map[string]string{"compute": url + "/compute/v2.1", "image": url + "/image"},
		Image:     "debian-12", Flavors: []string{"m1.huge", "m1.small"},
		Zones:       map[string]Zone{"a": {AvailabilityZone: "nova"}},
		CallTimeout: "2m",
	})
	if err != nil {
		t.Fatal(err)
	}
	p.UseSecrets(secretsOf)
	t.Cleanup(p.idle)
	template := provider.Template{Settings: map[string]any{"networks": []any{}}}
	providertest.Run(t, "openstack (Nova of Zed)", providertest.Harness{
		Open: func() (provider.Provider, error) { return p, nil },
		Remains: func(m provider.Machine) string {
			s, err := p.get(t.Context(), m.Ref)
			switch {
			case err != nil:
				return err.Error()
			case s != nil:
				return "server " + s.ID
			}
			return ""
		},
		Template: template, Patience: time.Minute, Poll: 500 * time.Millisecond,
	}, "RestartBootsAnew", "RestartOfOneBoot", "CrashIsSeen", "RestartOfStoppedAndCrashed", "ConsoleIsKept")

	t.Run("no room", func(t *testing.T) {
		req := providertest.Request("sh-room", "room-1", "a", template)
		req.Template.InstanceTypes = []string{"m1.huge"}
		if _, err := p.Create(t.Context(), req); provider.KindOf(err) != provider.Capacity {
			t.Errorf("%v, want capacity", err)
		}
	})
	t.Run("invalid", func(t *testing.T) {
		for name, settings := range map[string]map[string]any{
			"key": {"networks": []any{}, "key_name": "none-such"}, "image": {"networks": []any{}, "image": "none-such"},
		} {
			req := providertest.Request("sh-invalid", "invalid-1", "a", provider.Template{Settings: settings})
			if _, err := p.Create(t.Context(), req); provider.KindOf(err) != provider.Invalid {
				t.Errorf("%s: %v, want invalid", name, err)
			}
		}
	})
	t.Run("tags", func(t *testing.T) {
		req := providertest.Request("sh-tags", "tags-1", "a", template)
		req.Template.Tags = map[string]string{"team": "web shop"}
		m, err := p.Create(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		s, err := p.get(t.Context(), m.Ref)
		if err != nil || s.Metadata["team"] != "web shop" || s.Metadata[tagInstance] != "tags-1" {
			t.Errorf("%+v, %v", s, err)
		}
		if err := p.Delete(t.Context(), "sh-tags", "tags-1"); err != nil {
			t.Error(err)
		}
	})
}
