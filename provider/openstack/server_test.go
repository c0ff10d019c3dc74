package openstack

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
)

func TestWhatAServerIs(t *testing.T) {
	const launched = `, "OS-SRV-USG:launched_at": "2026-01-01T00:00:00.000000"`
	const asked = `, "metadata": {"leasehold_stop": "asked"}`
	for text, want := range map[string]provider.State{
		`"status": "BUILD", "OS-EXT-STS:task_state": "scheduling"`:    provider.StateStarting,
		`"status": "ACTIVE", "OS-EXT-STS:task_state": null`:           provider.StateRunning,
		`"status": "ACTIVE"` + asked:                                  provider.StateRunning,
		`"status": "ACTIVE", "OS-EXT-STS:task_state": "powering-off"`: provider.StateStopping,
		`"status": "ACTIVE", "OS-EXT-STS:task_state": "deleting"`:     provider.StateStopping,
		`"status": "HARD_REBOOT"`:                                     provider.StateStarting,
		`"status": "PAUSED"`:                                          provider.StateRunning,
		`"status": "SUSPENDED"`:                                       provider.StateUnknown,
		`"status": "SHELVED_OFFLOADED"`:                               provider.StateUnknown,
		`"status": "RESCUE"`:                                          provider.StateUnknown,
		`"status": "A_WORD_OF_THE_FUTURE"`:                            provider.StateUnknown,
		`"status": "UNKNOWN"`:                                         provider.StateUnknown,
		`"status": "SHUTOFF"`:                                         provider.StateCrashed,
		`"status": "SHUTOFF"` + asked:                                 provider.StateStopped,
		`"status": "SHUTOFF", "metadata": {"leasehold_stop": "no"}`:   provider.StateCrashed,
		`"status": "SHUTOFF", "OS-EXT-STS:task_state": "powering-on"`: provider.StateStarting,
		`"status": "SHUTOFF", "OS-EXT-STS:task_state": "rebuilding"`:  provider.StateUnknown,
		`"status": "SOFT_DELETED"`:                                    provider.StateStopped,
		`"status": "ERROR"`:                                           provider.StateFailed,
		`"status": "ERROR", "OS-EXT-STS:power_state": 1` + launched:   provider.StateUnknown,
		`"status": "ERROR", "OS-EXT-STS:power_state": 0` + launched:   provider.StateUnknown,
		`"status": "ERROR", "OS-EXT-STS:power_state": 4` + launched:   provider.StateCrashed,
	} {
		var s server
		if err := json.Unmarshal([]byte("{"+text+"}"), &s); err != nil {
			t.Fatal(err)
		}
		if m := s.machine(); m.State != want || m.State == provider.StateUnknown && m.Why == "" {
			t.Errorf("%s: %+v, want %s", text, m, want)
		}
	}
}

// A server without our metadata, or with another shard's, is never touched, whatever its name.
//
// proves PROV-8
func TestStrangers(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	for _, metadata := range []map[string]string{
		nil,
		{tagInstance: "i-1"},
		{tagShard: shard},
		{tagShard: "sh-2", tagInstance: "i-1"},
		{tagShard: shard, tagInstance: "i-2"},
	} {
		c.Add(openstacktest.Server{Name: nameOf("i-1"), Status: "ACTIVE", Launched: true, Metadata: metadata})
	}
	before := len(c.Servers())
	if err := errors.Join(p.Stop(t.Context(), shard, "i-1", 0), p.Delete(t.Context(), shard, "i-1")); err != nil {
		t.Error(err)
	}
	if err := p.Restart(t.Context(), shard, "i-1", ""); !errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart: %v", err)
	}
	m := mustCreate(t, p, request("i-1"))
	awaitRunning(t, p, m.Ref)
	if err := p.Delete(t.Context(), shard, "i-1"); err != nil {
		t.Error(err)
	}
	for _, s := range c.Servers() {
		if s.Status != "ACTIVE" || s.Task != "" || s.Metadata[tagStop] != "" {
			t.Errorf("a stranger was touched: %+v", s)
		}
	}
	if len(c.Servers()) != before {
		t.Errorf("there are %d servers, before %d", len(c.Servers()), before)
	}
}

// A server that an operator renamed is still found, to be stopped and removed.
func TestRenamedServersAreFound(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	m := mustCreate(t, p, request("i-1"))
	awaitRunning(t, p, m.Ref)
	c.Change(m.Ref, func(s *openstacktest.Server) { s.Name = "mine" })
	if err := p.Stop(t.Context(), shard, "i-1", 0); err != nil || mustList(t, p)[m.Ref].State != provider.StateStopped {
		t.Errorf("Stop: %v, %+v", err, mustList(t, p))
	}
	if err := p.Delete(t.Context(), shard, "i-1"); err != nil || len(c.Servers()) != 0 {
		t.Errorf("Delete: %v, left %+v", err, c.Servers())
	}
}

// What was stopped by us is stopped; what ends after another boot has crashed.
//
// proves DET-4
func TestStopsAndCrashes(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	m := mustCreate(t, p, request("i-1"))
	awaitRunning(t, p, m.Ref)
	if err := p.Stop(t.Context(), shard, "i-1", 0); err != nil || mustList(t, p)[m.Ref].State != provider.StateStopped {
		t.Fatalf("Stop: %v, %+v", err, mustList(t, p))
	}
	if err := p.Restart(t.Context(), shard, "i-1", ""); err != nil {
		t.Fatal(err)
	}
	awaitRunning(t, p, m.Ref)
	if err := c.Kill(m.Ref); err != nil || mustList(t, p)[m.Ref].State != provider.StateCrashed {
		t.Errorf("%v, %+v", err, mustList(t, p))
	}
	c.Change(m.Ref, func(s *openstacktest.Server) { s.Status = "SUSPENDED" })
	if err := p.Stop(t.Context(), shard, "i-1", 0); err == nil || !strings.Contains(err.Error(), "SUSPENDED") {
		t.Errorf("Stop of one that is suspended: %v", err)
	}
}

// proves PROV-3
func TestTemplatesAreChecked(t *testing.T) {
	p := on(t, newCloud(t), nil)
	for want, bad := range map[string]provider.Template{
		"template.settings":          {Settings: map[string]any{"imag": "x"}},
		"template.settings.image":    {Settings: map[string]any{"image": 7}},
		"template.settings.networks": {Settings: map[string]any{"networks": "net"}},
		"spot":                       {Spot: true},
		`zone "c"`:                   {Zones: []string{"c"}},
		"are Leasehold's":            {Tags: map[string]string{"leasehold_shard": "x"}},
		"Nova takes names":           {Tags: map[string]string{"a/b": "x"}},
		"255 bytes":                  {Tags: map[string]string{"a": strings.Repeat("x", 256)}},
	} {
		if err := p.Validate(bad); !errors.Is(err, provider.ErrInvalid) && provider.KindOf(err) != provider.Invalid ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
	bare := on(t, newCloud(t), func(c *Config) { c.Image, c.Flavors = "", nil })
	if err := bare.Validate(provider.Template{}); err == nil || !strings.Contains(err.Error(),
		"instance_types: are missing") ||
		!strings.Contains(err.Error(), "settings.image: is missing") {
		t.Errorf("without defaults: %v", err)
	}
	for want, change := range map[string]func(*provider.CreateRequest){
		"settings.image: Glance has no active image": func(r *provider.CreateRequest) {
			r.Template.Settings = map[string]any{"image": "debian-9"}
		},
		"instance_type: Nova has no flavor": func(r *provider.CreateRequest) {
			r.Template.InstanceTypes = []string{"m9"}
		},
		"settings.networks: Neutron has no network": func(r *provider.CreateRequest) {
			r.Template.Settings = map[string]any{"networks": []any{"net-z"}}
		},
	} {
		req := request("i-1")
		change(&req)
		if _, err := p.Create(t.Context(), req); provider.KindOf(err) != provider.Invalid || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	p = on(t, newCloud(t), func(c *Config) { c.Zones = map[string]Zone{"a": {Networks: []string{"net-z"}}} })
	const want = "networks of zone a in the provider's configuration: Neutron has no network"
	if _, err := p.Create(t.Context(), request("i-1")); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	good := Config{AuthURL: "https://k:5000/v3", User: "u", Project: "p", PasswordSecret: "s"}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"auth_url":                       func(c *Config) { c.AuthURL = "keystone" },
		"endpoints: \"dns\"":             func(c *Config) { c.Endpoints = map[string]string{"dns": "http://x"} },
		"endpoints: image":               func(c *Config) { c.Endpoints = map[string]string{"image": "x"} },
		"interface":                      func(c *Config) { c.Interface = "admin" },
		"either user":                    func(c *Config) { c.ApplicationCredential = "a" },
		"needs a project":                func(c *Config) { c.PasswordSecret = "" },
		"application_credential_secret,": func(c *Config) { *c = Config{AuthURL: c.AuthURL, ApplicationCredential: "a"} },
		"rate":                           func(c *Config) { c.Rate = -1 },
		"call_timeout":                   func(c *Config) { c.CallTimeout = "soon" },
		"read ca":                        func(c *Config) { c.CA = "/none" },
		"zones":                          func(c *Config) { c.Zones = map[string]Zone{"": {}} },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "openstack provider: ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
