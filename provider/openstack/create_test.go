package openstack

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/openstack/openstacktest"
)

// Where there is no room for a type the next one is tried, and nothing is left of the first.
//
// proves PROV-5
func TestTypesInOrderOfPreference(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	c.Set(func(c *openstacktest.Cloud) { c.Full = map[string]bool{openstacktest.LargeFlavor: true} })
	req := request("i-1")
	req.Template.InstanceTypes = []string{openstacktest.LargeFlavor, openstacktest.Flavor}
	m := mustCreate(t, p, req)
	if all := c.Servers(); len(all) != 1 || all[0].ID != m.Ref || all[0].Flavor != "1" {
		t.Errorf("there are %+v", all)
	}
	req = request("i-2")
	req.Template.InstanceTypes = []string{openstacktest.LargeFlavor}
	_, err := p.Create(t.Context(), req)
	var told *provider.Error
	if !errors.As(err, &told) || told.Kind != provider.Capacity ||
		told.Scope != "zone a, type "+openstacktest.LargeFlavor {
		t.Errorf("%v, want capacity", err)
	}
	if all := c.Servers(); len(all) != 1 {
		t.Errorf("of a server that failed is left: %+v", all)
	}
}

// A call that died after Nova found no room leaves a server that never ran. The next call removes
// it. One that failed for another reason, or that has run, stays.
//
// proves PROV-5
func TestATryInVainOfAnEarlierCallIsRemoved(t *testing.T) {
	for fault, goes := range map[string]bool{
		"No valid host was found.": true, "No fixed IP addresses available for network: net-a": true,
		"Maximum number of ports exceeded": true, "Build of instance aborted: the image is corrupt": false,
	} {
		for _, ran := range []bool{false, true} {
			c := newCloud(t)
			p := on(t, c, nil)
			dead := c.Add(openstacktest.Server{
				Name: nameOf("i-1"), Status: "ERROR", Fault: fault, Launched: ran,
				Metadata: map[string]string{tagShard: shard, tagInstance: "i-1", tagCall: "earlier"},
			})
			m := mustCreate(t, p, request("i-1"))
			if all := c.Servers(); len(all) != 1 || (m.Ref != dead) != (goes && !ran) || all[0].ID != m.Ref {
				t.Errorf("%s, ran %t: there are %+v", fault, ran, all)
			}
		}
	}
}

// proves PROV-6
func TestNetworksOfAZone(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, func(config *Config) {
		config.Zones = map[string]Zone{"a": {Networks: []string{openstacktest.Network, openstacktest.SmallNetwork}}}
	})
	onNetwork := func(id, want string) {
		t.Helper()
		m := mustCreate(t, p, request(id))
		for _, s := range c.Servers() {
			if s.ID != m.Ref {
				continue
			}
			text, _ := json.Marshal(s.Networks)
			if !strings.Contains(string(text), openstacktest.NetworkID(want)) || strings.Count(string(text), "uuid") != 1 {
				t.Errorf("%s is on %s, want %s", id, text, want)
			}
		}
	}
	onNetwork("i-1", openstacktest.Network) // Neutron does not tell
	c.Set(func(c *openstacktest.Cloud) {
		c.Availability = map[string]int{
			openstacktest.NetworkID(openstacktest.Network): 1, openstacktest.NetworkID(openstacktest.SmallNetwork): 5,
		}
	})
	onNetwork("i-2", openstacktest.SmallNetwork)
	c.Set(func(c *openstacktest.Cloud) { c.NoAddress = map[string]bool{openstacktest.SmallNetwork: true} })
	onNetwork("i-3", openstacktest.Network)
	if len(c.Servers()) != 3 {
		t.Errorf("there are %+v", c.Servers())
	}
	c.Set(func(c *openstacktest.Cloud) { c.NoAddress[openstacktest.Network] = true })
	if _, err := p.Create(t.Context(), request("i-4")); provider.KindOf(err) != provider.Capacity {
		t.Errorf("without a free address: %v", err)
	}
	req := request("i-5")
	req.Template.Settings = map[string]any{"networks": []any{}}
	mustCreate(t, p, req)
	if all := c.Servers(); all[len(all)-1].Networks != "none" {
		t.Errorf("networks %v, want none", all[len(all)-1].Networks)
	}
}

// What a template says reaches Nova in the call that makes the server, with all tags.
//
// proves PROV-3, PROV-8
func TestServersAreDescribed(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	req := request("i-1")
	req.Template.Tags = map[string]string{"team": "web"}
	req.Template.Settings = map[string]any{
		"key_name": "ops", "security_groups": []any{"web", "ssh"}, "networks": []any{openstacktest.Network},
		"config_drive": true,
	}
	m := mustCreate(t, p, req)
	s := c.Servers()[0]
	if s.Key != "ops" || strings.Join(s.SecurityGroups, " ") != "web ssh" || !s.ConfigDrive || s.Zone != "nova" ||
		s.Name != "ls-i-1" {
		t.Errorf("made %+v", s)
	}
	for key, want := range map[string]string{
		"team": "web", "leasehold_shard": shard, "leasehold_instance": "i-1", "leasehold_group": "web", "leasehold_zone": "a",
		"leasehold_call": req.Call,
	} {
		if s.Metadata[key] != want {
			t.Errorf("metadata %s: %q, want %q", key, s.Metadata[key], want)
		}
	}
	if m.Call != req.Call || m.Zone != "a" || m.Group != "web" {
		t.Errorf("Create returned %+v", m)
	}
	var config struct {
		Files []struct{ Path, Permissions, Content string } `json:"write_files"`
		Run   [][]string                                    `json:"runcmd"`
	}
	text, is := strings.CutPrefix(s.UserData, "#cloud-config\n")
	if err := json.Unmarshal([]byte(text), &config); err != nil || !is {
		t.Fatalf("user data %q: %v", s.UserData, err)
	}
	b, err := provider.ReadBootstrap([]byte(config.Files[0].Content))
	if err != nil || b.Instance != "i-1" || config.Files[0].Permissions != "0600" || len(config.Run) != 1 {
		t.Errorf("user data %+v, %v", config, err)
	}
}

// The largest document that is promised fits, and a larger one may not.
func TestTheLargestDocument(t *testing.T) {
	req := request("i-1")
	b := &req.Bootstrap
	for {
		b.CA += strings.Repeat("x", 100)
		document, err := b.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(document) > maxBootstrap {
			break
		}
		data, err := userData(req)
		if err != nil || base64.StdEncoding.EncodedLen(len(data)) > maxUserData {
			t.Fatalf("%d bytes of document are %d of user data, %v", len(document), base64.StdEncoding.EncodedLen(len(data)),
				err)
		}
	}
}

// Coordinators that know nothing of each other may make several servers. All are listed with their
// calls, one can be removed alone, and Delete removes all.
//
// proves PROV-4
func TestCallsThatOverlapMakeCopies(t *testing.T) {
	c := newCloud(t)
	const callers = 4
	var arrived sync.WaitGroup
	arrived.Add(callers)
	var made atomic.Int64
	c.Set(func(c *openstacktest.Cloud) {
		c.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/servers") && made.Add(1) <= callers {
				arrived.Done()
				arrived.Wait() // each has looked and found nothing
			}
			return false
		}
	})
	var all []*Provider
	for range callers {
		all = append(all, on(t, c, nil))
	}
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			if _, err := p.Create(t.Context(), request("i-1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	listed := mustList(t, all[0])
	calls := map[string]bool{}
	for _, m := range listed {
		calls[m.Call] = true
	}
	if len(listed) != callers || len(calls) != callers || calls[""] {
		t.Fatalf("listed %+v", listed)
	}
	if err := all[0].Restart(t.Context(), shard, "i-1", ""); err == nil || errors.Is(err, provider.ErrNotFound) {
		t.Errorf("Restart of several: %v", err)
	}
	for ref, m := range listed {
		for call, left := range map[string]int{"another": callers, "": callers} {
			if err := all[1].RemoveCopy(t.Context(), shard, "i-1", ref, call); err != nil || len(c.Servers()) != left {
				t.Errorf("RemoveCopy of call %q: %v", call, err)
			}
		}
		if err := all[1].RemoveCopy(t.Context(), "sh-2", "i-1", ref, m.Call); err != nil || len(c.Servers()) != callers {
			t.Errorf("RemoveCopy of another shard: %v", err)
		}
		if err := all[1].RemoveCopy(t.Context(), shard, "i-1", ref, m.Call); err != nil || len(c.Servers()) != callers-1 {
			t.Errorf("RemoveCopy: %v", err)
		}
		break
	}
	if err := all[2].Delete(t.Context(), shard, "i-1"); err != nil || len(c.Servers()) != 0 {
		t.Errorf("Delete: %v, left %+v", err, c.Servers())
	}
}

// An answer that is lost is temporary, and the next call finds the server.
//
// proves SAFE-8
func TestALostAnswer(t *testing.T) {
	c := newCloud(t)
	p := on(t, c, nil)
	c.Set(func(c *openstacktest.Cloud) {
		c.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/servers") {
				return false
			}
			again, err := http.NewRequestWithContext(r.Context(), r.Method, c.URL+"/compute/v2.1/servers?repeated", r.Body)
			if r.URL.RawQuery != "" || err != nil {
				return false
			}
			again.Header = r.Header
			answer, err := http.DefaultClient.Do(again)
			if err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return true
		}
	})
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	_, err := p.Create(t.Context(), request("i-1"))
	if err == nil || provider.KindOf(err) != provider.Temporary {
		t.Errorf("%v, want a temporary error", err)
	}
	if n := len(c.Servers()); n != 1 {
		t.Fatalf("there are %d servers: nothing was tried", n)
	}
	if m := mustCreate(t, p, request("i-1")); m.Ref != c.Servers()[0].ID || len(c.Servers()) != 1 {
		t.Errorf("the next call made %+v", c.Servers())
	}
}

// A template's settings replace the defaults of the configuration for that template alone.
//
// proves PROV-3
func TestSettingsLeaveTheConfigurationAlone(t *testing.T) {
	p := on(t, newCloud(t), func(c *Config) { c.SecurityGroups = []string{"ours"} })
	if s, err := p.readSettings(map[string]any{"security_groups": []any{"theirs"}}); err != nil ||
		!slices.Equal(s.SecurityGroups, []string{"theirs"}) {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := p.readSettings(nil); err != nil || !slices.Equal(s.SecurityGroups, []string{"ours"}) {
		t.Errorf("the next template gets %+v, %v", s, err)
	}
}
