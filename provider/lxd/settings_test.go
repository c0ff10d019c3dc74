package lxd

import (
	"encoding/json"
	"errors"
	"maps"
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
		"settings.imag: is no setting":                                    {"imag": "x"},
		"settings.image: must be":                                         {"image": 7},
		"settings.cpu: must be a whole number":                            {"cpu": 0.5},
		`settings.cpu: must be a whole number from 1 to 4096, and is "2"`: {"cpu": "2"},
		"settings.memory: must be a size":                                 {"memory": "lots"},
		"settings.disk: must be a size":                                   {"disk": "10"},
		"settings.profiles[1]: must be":                                   {"profiles": []any{"a", 1}},
		"settings.profiles: must be a list":                               {"profiles": "a"},
		"settings.network: must have exactly one": {"network": map[string]any{
			"bridge": "a",
			"none":   true,
		}},
		"settings.network.none: can only be":        {"network": map[string]any{"none": false}},
		"settings.network.vlan: is no":              {"network": map[string]any{"vlan": 1}},
		"settings.network: must be a mapping":       {"network": "none"},
		"settings.config.security.privileged: may":  {"config": map[string]any{"security.privileged": "true"}},
		"settings.config.raw.lxc: may":              {"config": map[string]any{"raw.lxc": ""}},
		"settings.config.user.leasehold.shard: may": {"config": map[string]any{"user.leasehold.shard": "x"}},
		"settings.config.environment.LEASEHOLD_BOOT_ID: may": {
			"config": map[string]any{"environment.LEASEHOLD_BOOT_ID": "x"},
		},
		"settings.config.user.: may":                     {"config": map[string]any{"user.": "x"}},
		"settings.config.limits.processes: must be text": {"config": map[string]any{"limits.processes": 5}},
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
		"settings.image: is missing": nil, "settings.disk: needs a pool": {"image": "a", "disk": "1GiB"},
	} {
		if err := bare.Validate(provider.Template{Settings: settings}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The schema has what the reader takes, and the forms agree.
//
// proves PROV-3
func TestSchemaIsOfTheSettings(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Default       any
			Properties    map[string]any
			PropertyNames struct{ Pattern string }
		}
	}
	if err := json.Unmarshal(schemaOf(Config{Image: "tiny"}), &schema); err != nil {
		t.Fatal(err)
	}
	_, wrong := readSettings(map[string]any{"x": 1})
	names := strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", ")
	if len(wrong) != 1 || !strings.HasSuffix(wrong[0].Error(), "it has "+names) {
		t.Errorf("the schema has %s, and the reader says %v", names, wrong)
	}
	_, wrong = readSettings(map[string]any{"network": map[string]any{"x": 1}})
	names = strings.Join(slices.Sorted(maps.Keys(schema.Properties["network"].Properties)), ", ")
	if len(wrong) != 1 || !strings.HasSuffix(wrong[0].Error(), "it has "+names) {
		t.Errorf("the schema has %s, and the reader says %v", names, wrong)
	}
	if schema.Properties["image"].Default != "tiny" {
		t.Errorf("image: %+v", schema.Properties["image"])
	}
	allowed := regexp.MustCompile(schema.Properties["config"].PropertyNames.Pattern)
	for _, key := range []string{
		"environment.A", "limits.processes", "raw.lxc", "security.nesting", "user.x",
		"limits.cpu",
	} {
		if mayPass(key) != allowed.MatchString(key) {
			t.Errorf("%s: the schema says %t", key, allowed.MatchString(key))
		}
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
