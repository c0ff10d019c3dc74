package lxd

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

// proves PROV-3
func TestSettingsAreChecked(t *testing.T) {
	p, err := New(Config{Pool: "default", Image: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	validate := func(settings map[string]any) error { return p.Validate(provider.Template{Settings: settings}) }
	for _, good := range []map[string]any{
		nil,
		{"image": "debian/12", "cpu": 2, "memory": "512MiB", "disk": "10GiB", "profiles": []any{"default", "web"}},
		{"cpu": float64(3)},
		{"network": map[string]any{"bridge": "br0"}},
		{"network": map[string]any{"managed": "lxdbr0"}},
		{"network": map[string]any{"none": true}},
		{"config": map[string]any{"environment.TZ": "UTC", "user.mine": "x", "limits.processes": "100"}},
	} {
		if err := validate(good); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	for want, bad := range map[string]map[string]any{
		"template.settings: there is no setting imag; the settings are config, cpu, disk": {"imag": "x"},
		"template.settings.image: got number, want string":                                {"image": 7},
		"template.settings.image: minLength":                                              {"image": ""},
		"template.settings.cpu: got number, want integer":                                 {"cpu": 0.5},
		"template.settings.cpu: got string, want integer":                                 {"cpu": "2"},
		"template.settings.memory: 'lots' does not match":                                 {"memory": "lots"},
		"template.settings.disk: '10' does not match":                                     {"disk": "10"},
		"template.settings.profiles[1]: got number": {
			"profiles": []any{"a", 1},
		},
		"template.settings.profiles: got string, want array": {"profiles": "a"},
		"template.settings.network: maxProperties": {"network": map[string]any{
			"bridge": "a",
			"none":   true,
		}},
		"template.settings.network.none: value must be true": {
			"network": map[string]any{"none": false},
		},
		"template.settings.network: additional properties 'vlan'": {
			"network": map[string]any{"vlan": 1},
		},
		"template.settings.network: got string, want object": {
			"network": "none",
		},
		"template.settings.config: additional properties 'security.privileged' not allowed: it has keys of LXD's": {
			"config": map[string]any{"security.privileged": "true"},
		},
		"template.settings.config: additional properties 'raw.lxc' not allowed: it has keys of LXD's": {
			"config": map[string]any{"raw.lxc": ""},
		},
		"template.settings.config.user.leasehold.shard: may not be set: it has keys of LXD's": {
			"config": map[string]any{"user.leasehold.shard": "x"},
		},
		"template.settings.config.user.leasehold.: may not be set": {
			"config": map[string]any{"user.leasehold.": "x"},
		},
		"template.settings.config.environment.LEASEHOLD_BOOT_ID: may not be set: it has keys of LXD's": {
			"config": map[string]any{"environment.LEASEHOLD_BOOT_ID": "x"},
		},
		"template.settings.config: additional properties 'user.' not allowed: it has keys of LXD's": {
			"config": map[string]any{"user.": "x"},
		},
		"template.settings.config.limits.processes: got number, want string": {
			"config": map[string]any{"limits.processes": 5},
		},
	} {
		if err := validate(bad); !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", bad, err, want)
		}
	}
	if err := p.Validate(provider.Template{InstanceTypes: []string{"c1"}}); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("an instance type: %v", err)
	}
	bare, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for want, settings := range map[string]map[string]any{
		"template.settings.image: is missing": nil, "template.settings.disk: needs a pool": {
			"image": "a", "disk": "1GiB",
		},
	} {
		if err := bare.Validate(provider.Template{Settings: settings}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A template's settings replace the defaults of the configuration for that template alone.
//
// proves PROV-3
func TestSettingsLeaveTheConfigurationAlone(t *testing.T) {
	p, err := New(Config{Pool: "default", Image: "tiny", Profiles: []string{"ours", "other"}})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.readSettings(map[string]any{"profiles": []any{"theirs"}, "image": "x"}); err != nil ||
		!slices.Equal(s.Profiles, []string{"theirs"}) || s.Image != "x" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := p.readSettings(nil); err != nil || s.Image != "tiny" ||
		!slices.Equal(s.Profiles, []string{"ours", "other"}) {
		t.Errorf("the next template gets %+v, %v", s, err)
	}
	s, err := p.readSettings(map[string]any{"profiles": []any{}})
	if err != nil || s.Profiles == nil || len(s.Profiles) != 0 {
		t.Errorf("no profiles: %+v, %v", s, err)
	}
	if !strings.Contains(string(schemaOf(Config{Image: "tiny"})), `"default":"tiny"`) {
		t.Error("the schema does not have the default image")
	}
}

func TestNamesAreThoseOfHosts(t *testing.T) {
	form := regexp.MustCompile(`^ls-[a-z0-9-]*[a-z0-9]$`)
	seen := map[string]string{}
	long := strings.Repeat("a", 70)
	for _, id := range []string{
		"web-3-ab12cd", "Web-3-ab12cd", "web_3-ab12cd", "web-3-ab12cd-", "web.3", "ü", long, long + "b",
		strings.Repeat("b", 60), "-",
	} {
		name := nameOf(id)
		if !form.MatchString(name) || len(name) > maxName || seen[name] != "" {
			t.Errorf("%q becomes %q, as does %q", id, name, seen[name])
		}
		seen[name] = id
	}
	if nameOf("web-3-ab12cd") != "ls-web-3-ab12cd" {
		t.Error(nameOf("web-3-ab12cd"))
	}
}

func TestMachinesAreDescribed(t *testing.T) {
	p, err := New(Config{Pool: "fast", Image: "tiny", Profiles: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	req := request1()
	req.Template.Settings = map[string]any{
		"cpu": 2, "memory": "1GiB", "disk": "5GiB", "network": map[string]any{"none": true},
		"config": map[string]any{"user.mine": "x"},
	}
	body, err := p.describe(req, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := json.Unmarshal(got, &read); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"profiles":[]`, `"limits.cpu":"2"`, `"limits.memory":"1GiB"`, `"size":"5GiB"`, `"pool":"fast"`,
		`"eth0":{"type":"none"}`,
		`"user.mine":"x"`, `"alias":"tiny"`, `"name":"ls-i1"`, `"user.leasehold.step":"new 2026-`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}
