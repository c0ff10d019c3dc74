package openstack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
	"github.com/leasehold/leasehold/provider/providertest"
)

const shard = "sh-1"

func request(instance string) provider.CreateRequest {
	return providertest.Request(shard, instance, "a", provider.Template{})
}

func mustCreate(t *testing.T, p *Provider, req provider.CreateRequest) provider.Machine {
	t.Helper()
	m, err := p.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustList(t *testing.T, p *Provider) map[string]provider.Machine {
	t.Helper()
	all, err := p.List(t.Context(), shard)
	if err != nil {
		t.Fatal(err)
	}
	byRef := map[string]provider.Machine{}
	for _, m := range all {
		byRef[m.Ref] = m
	}
	return byRef
}

func awaitRunning(t *testing.T, p *Provider, ref string) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(10 * time.Millisecond) {
		if m := mustList(t, p)[ref]; m.State == provider.StateRunning {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("server %s is listed as %+v", ref, m)
		}
	}
}

// intercept answers the requests that match instead of the cloud.
func intercept(c *openstacktest.Cloud, method, path string, answer http.HandlerFunc) {
	c.Set(func(c *openstacktest.Cloud) {
		c.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != method || !strings.HasPrefix(r.URL.Path, path) {
				return false
			}
			answer(w, r)
			return true
		}
	})
}

// proves PROV-5
func TestErrorsHaveAKind(t *testing.T) {
	for name, e := range map[string]struct {
		code         int
		text, header string
		want         provider.Kind
		scope        string
	}{
		"quota": {
			403, "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances", "",
			provider.Quota, "project machines",
		},
		"ports":     {403, "Maximum number of ports exceeded", "", provider.Quota, "project machines"},
		"old quota": {413, "Quota exceeded for cores", "", provider.Quota, "project machines"},
		"policy": {
			403, "Policy doesn't allow os_compute_api:servers:create to be performed.", "", provider.Credentials,
			"a right is missing",
		},
		"too fast":     {429, "Too many requests", "7", provider.Throttled, ""},
		"over limit":   {413, "Over limit", "7", provider.Throttled, ""},
		"bad template": {400, "Invalid key_name provided.", "", provider.Invalid, "settings.key_name"},
		"no image":     {400, "Can not find requested image", "", provider.Invalid, "settings.image"},
		"no network":   {400, "Network 4711 could not be found.", "", provider.Invalid, "settings.networks"},
		"too small":    {400, "Flavor's disk is too small for requested image.", "", provider.Invalid, "instance_type"},
		"no group":     {400, "Security group x not found.", "", provider.Invalid, "settings.security_groups"},
		"no disk":      {403, "Only volume-backed servers are allowed for flavors with zero disk.", "", provider.Invalid, ""},
		"conflict":     {409, "Port is still in use.", "", provider.Temporary, ""},
		"broken":       {500, "Unexpected API Error.", "", provider.Temporary, ""},
		"no gateway":   {502, "", "", provider.Temporary, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			p := on(t, c, nil)
			intercept(c, http.MethodPost, "/compute/v2.1/servers", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", e.header)
				openstacktest.Refuse(w, e.code, e.text)
			})
			_, err := p.Create(t.Context(), request("i-1"))
			var told *provider.Error
			errors.As(err, &told)
			if err == nil || provider.KindOf(err) != e.want || !strings.Contains(err.Error(), e.text) ||
				e.scope != "" && !strings.Contains(told.Scope, e.scope) {
				t.Errorf("%v, want %s", err, e.want)
			}
			if after, is := provider.RetryAfter(err); is && after != 7*time.Second {
				t.Errorf("to be asked again after %s", after)
			}
		})
	}
}

// A token that expires in the middle of work is exchanged for another one. Credentials that are
// refused say so, and a password that was changed is read again.
//
// proves PROV-5, SEC-6
func TestTokensExpire(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	mustCreate(t, p, request("i-1"))
	c.Expire()
	if len(mustList(t, p)) != 1 {
		t.Error("after its token expired it lists nothing")
	}
	c.Expire()
	mustCreate(t, p, request("i-2"))

	var wrong atomic.Bool
	wrong.Store(true)
	p.UseSecrets(func(name string) (string, error) {
		if wrong.Load() {
			return "no", nil
		}
		return secretsOf(name)
	})
	c.Expire()
	if _, err := p.List(t.Context(), shard); !errors.Is(err, provider.ErrCredentials) &&
		provider.KindOf(err) != provider.Credentials {
		t.Errorf("with the wrong password: %v", err)
	}
	wrong.Store(false)
	mustList(t, p)

	p.UseSecrets(func(string) (string, error) { return "", errors.New("there is no such secret") })
	c.Expire()
	if _, err := p.List(t.Context(), shard); provider.KindOf(err) != provider.Credentials || !strings.Contains(err.Error(),
		"no such secret") {
		t.Errorf("without a secret: %v", err)
	}
}

func TestApplicationCredentials(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, func(config *Config) {
		config.User, config.Project, config.PasswordSecret = "", "", ""
		config.ApplicationCredential, config.ApplicationCredentialSecret = openstacktest.Credential, "app"
	})
	mustCreate(t, p, request("i-1"))
}

// A read waits out a throttle; a server that was made is no reason to say that nothing was done.
//
// proves PROV-5
func TestThrottles(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	var left atomic.Int64
	throttle := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || left.Add(-1) < 0 {
			return false
		}
		w.Header().Set("Retry-After", "0.01")
		openstacktest.Refuse(w, http.StatusTooManyRequests, "slow down")
		return true
	}
	c.Set(func(c *openstacktest.Cloud) { c.Intercept = throttle })
	left.Store(5)
	m := mustCreate(t, p, request("i-1"))
	left.Store(3)
	if mustList(t, p)[m.Ref].Instance != "i-1" {
		t.Error("it is not listed")
	}
	intercept(c, http.MethodGet, "/compute", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		openstacktest.Refuse(w, http.StatusTooManyRequests, "slow down")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := p.List(ctx, shard)
	if after, is := provider.RetryAfter(err); !is || after != 10*time.Minute {
		t.Errorf("List: %v", err)
	}
}

// A list is complete or an error, whatever comes in its place.
func TestListIsNeverAPart(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	c.Set(func(c *openstacktest.Cloud) { c.Page = 1 })
	for _, id := range []string{"i-1", "i-2", "i-3"} {
		mustCreate(t, p, request(id))
	}
	page := 0
	for name, answer := range map[string]http.HandlerFunc{
		"no list":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) },
		"cut short": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"servers": [`)) },
		"HTML":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) },
		"no ID":     func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"servers": [{}]}`)) },
		"a circle": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"servers": [{"id": "x"}], "servers_links": [{"rel": "next"}]}`))
		},
		"a second page that fails": func(w http.ResponseWriter, r *http.Request) {
			if page++; r.URL.Query().Get("marker") != "" {
				openstacktest.Refuse(w, http.StatusInternalServerError, "a part is down")
				return
			}
			_, _ = w.Write([]byte(`{"servers": [{"id": "x", "metadata": {}}], "servers_links": [{"rel": "next"}]}`))
		},
	} {
		intercept(c, http.MethodGet, "/compute/v2.1/servers/detail", answer)
		if all, err := p.List(t.Context(), shard); err == nil {
			t.Errorf("%s is taken for a list: %+v", name, all)
		}
	}
	c.Set(func(c *openstacktest.Cloud) { c.Intercept = nil })
	if all := mustList(t, p); len(all) != 3 {
		t.Errorf("listed %+v", all)
	}
}

// A 404 that is not Nova's says of no server that it is gone: Apache answers so while Nova's
// configuration is missing, and Nova does to a path that it does not have.
//
// proves DET-4, SAFE-8
func TestA404OfAnotherProgramProvesNothing(t *testing.T) {
	for name, body := range map[string]string{
		"HTML": "<!DOCTYPE HTML><html><title>404 Not Found</title></html>", "empty": "",
		"a path": `{"message": "The resource could not be found.", "code": "404 Not Found", "title": "Not Found"}`,
	} {
		c := newCloud(t)
		p := on(t, c, nil)
		m := mustCreate(t, p, request("i-1"))
		awaitRunning(t, p, m.Ref)
		lists := false // an empty list beside the 404
		c.Set(func(c *openstacktest.Cloud) {
			c.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case strings.HasPrefix(r.URL.Path, "/compute/v2.1/servers/"+m.Ref):
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(body))
				case lists && r.URL.Path == "/compute/v2.1/servers/detail":
					_, _ = w.Write([]byte(`{"servers": []}`))
				default:
					return false
				}
				return true
			}
		})
		for what, call := range map[string]func() error{
			"Create":     func() error { _, err := p.Create(t.Context(), request("i-1")); return err },
			"Stop":       func() error { return p.Stop(t.Context(), shard, "i-1", time.Second) },
			"Restart":    func() error { return p.Restart(t.Context(), shard, "i-1", "") },
			"Console":    func() error { _, err := p.Console(t.Context(), shard, "i-1"); return err },
			"Delete":     func() error { return p.Delete(t.Context(), shard, "i-1") },
			"RemoveCopy": func() error { return p.RemoveCopy(t.Context(), shard, "i-1", m.Ref, m.Call) },
		} {
			if err := call(); err == nil || provider.KindOf(err) != provider.Temporary {
				t.Errorf("%s: %s: %v, want an error that is temporary", name, what, err)
			}
		}
		lists = true
		if all, err := p.List(t.Context(), shard); err == nil {
			t.Errorf("%s: List: %+v", name, all)
		}
		c.Set(func(c *openstacktest.Cloud) { c.Intercept = nil })
		if all := mustList(t, p); len(all) != 1 || all[m.Ref].State != provider.StateRunning || len(c.Servers()) != 1 {
			t.Errorf("%s: listed %+v; there are %d servers", name, all, len(c.Servers()))
		}
	}
}

// While a part of Nova is down, its servers are unknown to a coordinator that has seen them, and
// the list is an error for one that has not. On later pages Nova leaves them out without a word.
func TestAPartOfNovaIsDown(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	first := mustCreate(t, p, request("i-1"))
	for _, id := range []string{"i-2", "i-3"} {
		mustCreate(t, p, request(id))
	}
	hide := func(page int) {
		c.Set(func(c *openstacktest.Cloud) { c.Page, c.Hidden = page, map[string]bool{first.Ref: true} })
	}
	for _, page := range []int{1000, 1} { // on the first page, or left out of a later one
		hide(page)
		all := mustList(t, p)
		if m := all[first.Ref]; len(all) != 3 || m.State != provider.StateUnknown || m.Instance != "i-1" || m.Zone != "a" ||
			m.Call != first.Call {
			t.Errorf("pages of %d: %+v", page, all)
		}
	}
	hide(1000)
	if all, err := on(t, c, nil).List(t.Context(), shard); err == nil {
		t.Errorf("a coordinator that has not seen the server lists %+v", all)
	}
	if err := p.Delete(t.Context(), shard, "i-1"); err == nil {
		t.Error("a server out of reach counts as deleted")
	}
	c.Set(func(c *openstacktest.Cloud) { clear(c.Hidden) })
	if err := p.Delete(t.Context(), shard, "i-1"); err != nil || len(mustList(t, p)) != 2 {
		t.Errorf("Delete: %v", err)
	}
}
