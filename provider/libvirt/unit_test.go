package libvirt

import (
	"encoding/xml"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

func TestConfigurations(t *testing.T) {
	ok := map[string]Zone{"a": {URI: "qemu:///system"}}
	for says, c := range map[string]Config{
		"zones: at least one":            {},
		`zones: a b: a zone's name`:      {Zones: map[string]Zone{"a b": {URI: "qemu:///system"}}},
		"zones: a: memory":               {Zones: map[string]Zone{"a": {URI: "qemu:///system", Memory: "much"}}},
		"by their unix socket or by TLS": {Zones: map[string]Zone{"a": {URI: "qemu+ssh://host/system"}}},
		"must be qemu:///system":         {Zones: map[string]Zone{"a": {URI: "qemu:///etc"}}},
		"no parameters but socket":       {Zones: map[string]Zone{"a": {URI: "qemu://host/system?no_verify=1"}}},
		"needs cert, key and ca":         {Zones: map[string]Zone{"a": {URI: "qemu+tls://host/system"}}},
		"read cert and key": {
			Zones: map[string]Zone{"a": {URI: "qemu://host/system"}}, Cert: "/no", Key: "/no",
			CA: "/no",
		},
		"networks and user_network": {Zones: ok, Networks: []string{"lan"}, UserNetwork: true},
		`networks: "../x"`:          {Zones: ok, Networks: []string{"../x"}},
		`image "../../etc/shadow"`:  {Zones: ok, Image: "../../etc/shadow"},
		`pool "/etc"`:               {Zones: ok, Pool: "/etc"},
		`instance_types: "small"`: {Zones: ok, InstanceTypes: map[string]InstanceType{"small": {
			VCPUs:  1,
			Memory: "1G",
		}}},
		`call_timeout "soon"`: {Zones: ok, CallTimeout: "soon"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", c, err, says)
		}
	}
}

// Files are named as volumes: a template cannot have the hypervisor read another one.
//
// proves PROV-3, SEC-7
func TestTemplates(t *testing.T) {
	p, err := New(Config{
		Zones:         map[string]Zone{"a": {URI: "qemu:///system"}},
		InstanceTypes: map[string]InstanceType{"small": {VCPUs: 1, Memory: "1GiB"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	with := func(settings map[string]any) provider.Template { return provider.Template{Settings: settings} }
	image := map[string]any{"image": "debian.qcow2"}
	for says, template := range map[string]provider.Template{
		"settings.image: is missing":  {},
		"template.settings.image":     with(map[string]any{"image": "/etc/shadow"}),
		"template.settings.kernel":    with(map[string]any{"kernel": "../vmlinuz"}),
		"there is an image as well":   with(map[string]any{"image": "a", "kernel": "b"}),
		"there is an initrd or a cmd": with(map[string]any{"image": "a", "initrd": "b"}),
		"use data_disk":               with(map[string]any{"kernel": "b", "disk": "1GiB"}),
		"settings.cmdline":            with(map[string]any{"kernel": "b", "cmdline": "a\nb"}),
		"template.settings.machine":   with(map[string]any{"image": "a", "machine": "isapc"}),
		"template.settings.networks":  with(map[string]any{"image": "a", "networks": []any{"a/b"}}),
		"template.settings.memory":    with(map[string]any{"image": "a", "memory": "1G"}),
		"is too large":                with(map[string]any{"image": "a", "data_disk": "9999999999TiB"}),
		"instance_types are small":    {InstanceTypes: []string{"huge"}, Settings: image},
		"are the instance type's": {InstanceTypes: []string{"small"}, Settings: map[string]any{
			"image": "a",
			"vcpus": 2,
		}},
		`zone "b": this provider has a`:  {Zones: []string{"b"}, Settings: image},
		"lower price":                    {Spot: true, Settings: image},
		"at most 255 bytes of printable": {Tags: map[string]string{"a": "\x00"}, Settings: image},
	} {
		if err := p.Validate(template); !errors.Is(err, provider.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", template, err, says)
		}
	}
	if err := p.Validate(provider.Template{
		InstanceTypes: []string{"small"}, Zones: []string{"a"},
		Settings: image,
	}); err != nil {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range []key{
		{"s1", "web-0-a"},
		{"s2", "web-0-a"},
		{"s1", "WEB-0-a"},
		{"s1", "web/0"},
		{"s1", "../../etc"},
		{"s1", strings.Repeat("a", 300)},
		{"s1", strings.Repeat("a", 299)},
		{"s1", "web.0"},
	} {
		name := k.nameOf()
		if seen[name] || len(name) > maxName || !strings.HasPrefix(name, prefixOf(k.shard)) ||
			strings.ContainsAny(name, "./ ABW") {
			t.Errorf("%v has the name %s", k, name)
		}
		seen[name] = true
	}
	if a, b := macOf("x", 0), macOf("x", 1); a == b || len(a) != len("52:00:00:00:00:00") || !strings.HasPrefix(a, "52:") {
		t.Errorf("%s, %s", a, b)
	}
}

// What is noted is read as it was, whatever text is in it.
func TestRecords(t *testing.T) {
	was := record{
		Shard: "s", Instance: "i", Group: `<&"'>`, Zone: "a", Call: "c", Pool: "p", Memory: 1 << 40, Why: "line\nline <x>",
		Stopped: true, Networks: []string{"a", "b"}, Tags: tagsOf(map[string]string{"team": `"shop" & <co>`, "a": ""}),
	}
	was.note(stepStarting)
	was.Why = "why\n<x>"
	for _, space := range []string{"", namespace} {
		text, err := was.encode(space)
		if err != nil {
			t.Fatal(err)
		}
		var is record
		if err := xml.Unmarshal([]byte(text), &is); err != nil || is.Why != was.Why || is.Group != was.Group ||
			is.Step != was.Step ||
			!is.Stopped || is.Memory != was.Memory || !slices.Equal(is.Tags, was.Tags) ||
			!slices.Equal(is.Networks, was.Networks) {
			t.Errorf("%s is read as %+v, %v", text, is, err)
		}
	}
}

// proves DET-4
func TestStates(t *testing.T) {
	long := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		state   api.DomainState
		reason  int
		step    step
		at      string
		stopped bool
		want    provider.State
	}{
		{api.DomainRunning, 1, stepStarted, long, false, provider.StateRunning},
		{api.DomainRunning, 1, stepStarted, long, true, provider.StateStopping},
		{api.DomainRunning, 1, stepStarting, long, false, provider.StateRunning},
		{api.DomainShutdown, 1, stepStarted, long, false, provider.StateStopping},
		{api.DomainPaused, int(api.DomainPausedIoerror), stepStarted, long, false, provider.StateRunning},
		{api.DomainPaused, int(api.DomainPausedStartingUp), stepStarting, long, false, provider.StateStarting},
		{api.DomainPaused, int(api.DomainPausedCrashed), stepStarted, long, false, provider.StateCrashed},
		{api.DomainPmsuspended, 0, stepStarted, long, false, provider.StateUnknown},
		{api.DomainShutoff, 0, stepNew, time.Now().UTC().Format(time.RFC3339), false, provider.StateStarting},
		{api.DomainShutoff, 0, stepNew, long, false, provider.StateFailed},
		{api.DomainShutoff, 0, stepStarting, long, false, provider.StateFailed},
		{api.DomainShutoff, 0, stepStarting, "", false, provider.StateFailed},
		{api.DomainShutoff, int(api.DomainShutoffCrashed), stepStarting, long, false, provider.StateCrashed},
		{api.DomainShutoff, 0, stepFailed, long, false, provider.StateFailed},
		{api.DomainShutoff, int(api.DomainShutoffDestroyed), stepRestarting, long, false, provider.StateFailed},
		{api.DomainShutoff, int(api.DomainShutoffShutdown), stepStarted, long, true, provider.StateStopped},
		{api.DomainShutoff, int(api.DomainShutoffShutdown), stepStarted, long, false, provider.StateCrashed},
		{api.DomainShutoff, 0, stepStarted, long, false, provider.StateCrashed}, // after a restart of the host
		{api.DomainShutoff, int(api.DomainShutoffSaved), stepStarted, long, false, provider.StateUnknown},
		{api.DomainShutoff, int(api.DomainShutoffMigrated), stepStarted, long, false, provider.StateUnknown},
		{api.DomainCrashed, 0, stepStarted, long, false, provider.StateCrashed},
	} {
		d := domain{state: c.state, reason: int32(c.reason), record: record{Step: c.step, At: c.at, Stopped: c.stopped}}
		if got, why := d.is(time.Minute); got != c.want || got == provider.StateCrashed && why == "" {
			t.Errorf("%+v: %s (%s), want %s", c, got, why, c.want)
		}
	}
}

// Of two domains with one UUID, the one that runs is the machine. Where none runs, both show.
func TestRemnantsOfMigrationsAreNotListed(t *testing.T) {
	in := func(zone string, uuid byte, down bool) sighting {
		return sighting{provider.Machine{Zone: zone}, api.UUID{uuid}, down}
	}
	for _, c := range []struct {
		all  []sighting
		want string
	}{
		{[]sighting{in("a", 1, true), in("b", 1, false), in("c", 1, true)}, "b"},
		{[]sighting{in("a", 1, true), in("b", 1, true)}, "ab"},
		{[]sighting{in("a", 1, false), in("b", 1, false)}, "ab"},
		{[]sighting{in("a", 1, true), in("b", 2, false)}, "ab"},
	} {
		got := ""
		for _, m := range withoutRemnants(c.all) {
			got += m.Zone
		}
		if got != c.want {
			t.Errorf("%+v: listed in %s, want %s", c.all, got, c.want)
		}
	}
}

// A domain that was migrated away has run, so that neither Create nor Restart starts it.
//
// proves SAFE-8
func TestMigratedDomains(t *testing.T) {
	d := &domain{state: api.DomainShutoff, reason: int32(api.DomainShutoffMigrated)}
	if !d.moved() || !d.hasRun() || d.executes() {
		t.Errorf("%+v", d)
	}
	if err := errMoved; provider.KindOf(err) != provider.Temporary {
		t.Error(err)
	}
}

// proves PROV-5
func TestMeaningsOfErrors(t *testing.T) {
	h := &hypervisor{zone: "a", where: "qemu:///system"}
	for _, c := range []struct {
		number api.ErrorNumber
		text   string
		want   provider.Kind
	}{
		{api.ErrAuthFailed, "authentication failed", provider.Credentials},
		{api.ErrAccessDenied, "access denied", provider.Credentials},
		{api.ErrInternalError, "cannot set up guest memory 'pc.ram': Cannot allocate memory", provider.Capacity},
		{api.ErrSystemError, "cannot fill file: No space left on device", provider.Capacity},
		{api.ErrNoNetwork, "Network not found: no network with matching name 'x'", provider.Invalid},
		{api.ErrConfigUnsupported, "unsupported configuration: Emulator does not support machine type", provider.Invalid},
		{api.ErrInternalError, "anything else", provider.Temporary},
		{api.ErrOperationInvalid, "domain is not running", provider.Temporary},
	} {
		err := h.meaning(api.Error{Code: uint32(c.number), Message: c.text}, "type small")
		var known *provider.Error
		if provider.KindOf(err) != c.want || c.want == provider.Capacity &&
			(!errors.As(err, &known) || known.Scope != "zone a, type small") {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
}

// proves SEC-7
func TestNoLinkLocalAddressIsReached(t *testing.T) {
	h := newHypervisor("a")
	h.host, h.port = "169.254.1.1", "16514"
	if _, err := h.dialLibvirtd(t.Context()); err == nil || !strings.Contains(err.Error(), "link-local") {
		t.Error(err)
	}
}
