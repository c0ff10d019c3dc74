package ec2

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/ec2/ec2test"
	"github.com/leasehold/leasehold/provider/faultproxy"
	"github.com/leasehold/leasehold/provider/suite"
)

// slow is an account in which everything takes the time that it takes at EC2.
func slow() ec2test.Config {
	c := account()
	c.Lag, c.TagLag, c.BootTime, c.StopTime = 5*time.Second, 10*time.Second, 20*time.Second, 30*time.Second
	return c
}

func request(instance, zone string) provider.CreateRequest {
	return suite.Request("sh1", instance, zone, plain)
}

func create(t *testing.T, p *Provider, req provider.CreateRequest) provider.Machine {
	t.Helper()
	m, err := p.Create(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func listed(t *testing.T, p *Provider) map[string]provider.Machine {
	t.Helper()
	machines, err := p.List(t.Context(), "sh1")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]provider.Machine{}
	for _, m := range machines {
		out[m.Ref] = m
	}
	return out
}

// An instance has one machine: whether the answer of the request that made it was lost, its tags do
// not show yet, another coordinator repeats the call, or EC2 has forgotten the client token.
//
// proves SAFE-8, PROV-4
func TestOneMachineForOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := imagine(t, slow(), faultproxy.Fault{Kind: faultproxy.Swallow, When: action("RunInstances"), Times: 1})
		first, second := w.provider(nil), w.provider(nil)
		if _, err := first.Create(t.Context(), request("web-1", "a")); provider.KindOf(err) != provider.Temporary {
			t.Fatalf("an answer that was lost: %v", err)
		}
		m := create(t, second, request("web-1", "a"))
		if m.Instance != "web-1" || m.Shard != "sh1" || m.Group != "web" || m.Zone != "a" || !w.is(m.Ref) {
			t.Errorf("%+v", m)
		}
		sleep(time.Minute)
		w.server.ForgetTokens()
		if again := create(t, first, request("web-1", "a")); again.Ref != m.Ref {
			t.Errorf("%s, and then %s", m.Ref, again.Ref)
		}
		if live := w.server.Live(); len(live) != 1 {
			t.Errorf("there are %v", live)
		}
	})
}

func (w *imagined) is(ref string) bool { return len(w.server.Live()) == 1 && w.server.Live()[0] == ref }

// A machine with our tags that Leasehold did not make is listed, and left alone.
//
// proves PROV-4, PROV-8
func TestCopiesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := imagine(t, slow())
		p := w.provider(nil)
		m := create(t, p, request("web-1", "b"))
		sleep(time.Minute)
		imitation, err := w.server.Copy(m.Ref)
		if err != nil {
			t.Fatal(err)
		}
		sleep(time.Minute)
		if l := listed(t, p); len(l) != 2 || l[imitation].Instance != "web-1" || l[m.Ref].Instance != "web-1" ||
			!l[imitation].Foreign || l[m.Ref].Foreign {
			t.Errorf("listed %+v", l)
		}
		if again := create(t, p, request("web-1", "b")); again.Ref != m.Ref {
			t.Errorf("Create returned %s", again.Ref)
		}
		if err := p.Stop(t.Context(), "sh1", "web-1", time.Minute); err != nil {
			t.Error(err)
		}
		if err := p.Delete(t.Context(), "sh1", "web-1"); err != nil {
			t.Error(err)
		}
		if l := listed(t, p); len(l) != 1 || l[imitation].State != provider.StateRunning {
			t.Errorf("the copy was touched: %+v", l)
		}
		sleep(2 * time.Hour)
		if _, err := w.provider(nil).Create(t.Context(), request("web-1", "b")); err == nil || !strings.Contains(err.Error(),
			imitation) {
			t.Errorf("an instance of which there is a copy alone: %v", err)
		}
	})
}

// A machine with our shard's tag and without an instance's is no instance's: it is not listed, so
// that nothing is concluded from it, and no call touches it.
//
// proves PROV-8, REC-8
func TestAMachineWithoutAnInstanceIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := imagine(t, slow())
		p := w.provider(nil)
		m := create(t, p, request("web-1", "b"))
		sleep(time.Minute)
		other, err := w.server.Copy(m.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.server.Untag(other, tagInstance); err != nil {
			t.Fatal(err)
		}
		sleep(time.Minute)
		if l := listed(t, p); len(l) != 1 || l[m.Ref].Instance != "web-1" {
			t.Errorf("listed %+v", l)
		}
		if err := errors.Join(p.Stop(t.Context(), "sh1", "web-1", time.Minute),
			p.Delete(t.Context(), "sh1", "web-1")); err != nil {
			t.Error(err)
		}
		if live := w.server.Live(); !slices.Equal(live, []string{other}) {
			t.Errorf("there are %v, want %s alone", live, other)
		}
	})
}

// Types are tried in order, subnets by their free addresses, and only when all are used up the zone
// has no room: also if EC2 takes a client token for used that it has refused.
//
// proves PROV-5, PROV-6
func TestTypesAndSubnetsInOrder(t *testing.T) {
	for _, bind := range []bool{false, true} {
		t.Run(fmt.Sprintf("refusals bind tokens %t", bind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := slow()
				c.RefusedBind = bind
				c.Subnets[testSubnet], c.Subnets[otherSubnet] = ec2test.Subnet{
					Zone: "test-1a",
					Free: 2,
				}, ec2test.Subnet{Zone: "test-1a", Free: 1}
				w := imagine(t, c)
				p := w.provider(nil)
				w.server.SetRoom("m7g.large", "test-1a", -1) // not there at all
				w.server.SetRoom("m6g.large", "test-1a", 0)
				w.server.SetRoom("c7g.large", "test-1a", 3)
				req := request("web-1", "a")
				req.Template.InstanceTypes = []string{"m7g.large"}
				if _, err := p.Create(t.Context(), req); provider.KindOf(err) != provider.Invalid {
					t.Errorf("a type that the zone never has: %v", err)
				}
				req.Template.InstanceTypes = []string{"m7g.large", "m6g.large", "c7g.large"}
				for i := range 3 {
					req.Bootstrap.Instance = fmt.Sprintf("web-%d", i)
					m := create(t, p, req)
					if typ, _ := w.server.Placed(m.Ref); typ != "c7g.large" {
						t.Errorf("machine %d is a %s", i, typ)
					}
				}
				req.Bootstrap.Instance = "web-9"
				var full *provider.Error
				if _, err := p.Create(t.Context(), req); !errors.As(err, &full) || full.Kind != provider.Capacity ||
					full.Scope != "zone a" {
					t.Errorf("when all is used up: %v", err)
				}
				if doubles := w.server.Doubles(); len(doubles) > 0 || len(w.server.Live()) != 3 {
					t.Errorf("there are %v, and twice %v", w.server.Live(), doubles)
				}
			})
		})
	}
}

// Machines that ended by themselves are told from those that were stopped, also when EC2 has
// terminated them; a terminated one is evidence until its Delete.
//
// proves DET-4, SPOT-2
func TestHowMachinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slow()
		c.Spots = 1
		w := imagine(t, c)
		p := w.provider(nil)
		spot := request("spot-1", "b")
		spot.Template.Spot = true
		m := create(t, p, spot)
		spot.Bootstrap.Instance = "spot-2"
		if _, err := p.Create(t.Context(), spot); !errors.Is(err, provider.ErrQuota) &&
			provider.KindOf(err) != provider.Quota {
			t.Errorf("one Spot machine too many: %v", err)
		}
		w.server.BreakNext("Client.VolumeLimitExceeded")
		broken := create(t, p, request("broken-1", "b"))
		stopped, crashed := create(t, p, request("web-1", "b")), create(t, p, request("web-2", "b"))
		sleep(time.Minute)
		if err := errors.Join(w.server.Interrupt(m.Ref), w.server.Kill(crashed.Ref),
			p.Stop(t.Context(), "sh1", "web-1", time.Minute)); err != nil {
			t.Fatal(err)
		}
		sleep(time.Minute)
		l := listed(t, p)
		for ref, want := range map[string]provider.State{
			m.Ref: provider.StateCrashed, broken.Ref: provider.StateFailed, crashed.Ref: provider.StateCrashed,
			stopped.Ref: provider.StateStopped,
		} {
			if l[ref].State != want || l[ref].Why == "" {
				t.Errorf("%s: %+v, want %s", ref, l[ref], want)
			}
		}
		spot.Bootstrap.Instance = "spot-1"
		if again := create(t, p, spot); again.Ref != m.Ref || !again.State.Down() {
			t.Errorf("Create of a machine that EC2 took away: %+v", again)
		}
		for _, name := range []string{"spot-1", "broken-1", "web-1", "web-2"} {
			if err := p.Delete(t.Context(), "sh1", name); err != nil {
				t.Error(err)
			}
			if _, err := p.Create(t.Context(), request(name, "b")); !errors.Is(err, provider.ErrDeleted) {
				t.Errorf("Create after Delete of %s: %v", name, err)
			}
		}
		if l := listed(t, p); len(l) > 0 {
			t.Errorf("after Delete: %+v", l)
		}
		spot.Bootstrap.Instance = "spot-3"
		create(t, p, spot)
		sleep(time.Minute)
		if err := p.Stop(t.Context(), "sh1", "spot-3", time.Minute); err != nil || len(w.server.Live()) > 0 {
			t.Errorf("Stop of a Spot machine: %v, there are %v", err, w.server.Live())
		}
	})
}

// A machine that does not end in order is ended by force when its time is over.
func TestStopByForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slow()
		c.StopTime = time.Hour
		w := imagine(t, c)
		p := w.provider(nil)
		create(t, p, request("web-1", "b"))
		sleep(time.Minute)
		begun := time.Now()
		if err := p.Stop(t.Context(), "sh1", "web-1", 30*time.Second); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < 30*time.Second || took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

// What is made carries all tags, asks for version 2 of the metadata service, and has the bootstrap
// document in its user data; the server refuses anything else.
//
// proves PROV-8
func TestWhatIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := imagine(t, account())
		p := w.provider(nil)
		req := request("web-1", "a")
		yes := true
		req.Template.Settings = map[string]any{
			"key_name": "ops", "security_groups": []string{"sg-01234567"},
			"instance_profile": "arn:aws:iam::1:instance-profile/web",
			"root_disk":        map[string]any{"gib": 20, "type": "gp3", "encrypted": yes}, "public_address": true,
			"metadata_hops": 2,
			"image":         testImage, "user_data": "#!/bin/sh\necho first\n",
		}
		if err := p.Validate(req.Template); err != nil {
			t.Fatal(err)
		}
		m := create(t, p, req)
		machine, volume := w.server.Tags(m.Ref)
		for _, tags := range []map[string]string{machine, volume} {
			for k, v := range map[string]string{
				"leasehold:shard": "sh1", "leasehold:instance": "web-1", "leasehold:group": "web", "leasehold:zone": "a",
				"Name": "web-1", "team": "web",
			} {
				if tags[k] != v {
					t.Errorf("tag %s is %q, want %q", k, tags[k], v)
				}
			}
		}
		if _, subnet := w.server.Placed(m.Ref); subnet != testSubnet {
			t.Errorf("it is in %s, not in the subnet with the most free addresses", subnet)
		}
	})
}

// User data has what the template adds first, and always has room for the largest bootstrap
// document.
func TestUserData(t *testing.T) {
	req := request("web-1", "a")
	b := &req.Bootstrap
	plain, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, (maxBootstrap-len(plain)-len(`,"ca":""`))/2) // does not get shorter than its half
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	b.CA = hex.EncodeToString(noise) + strings.Repeat("x", (maxBootstrap-len(plain)-len(`,"ca":""`))%2)
	if document, err := b.Encode(); err != nil || len(document) != maxBootstrap {
		t.Fatalf("%d bytes, %v", len(document), err)
	}
	text, err := userData(req, "#cloud-config\n"+strings.Repeat("#", maxUserData-14))
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(data) > maxSize || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		t.Errorf("%d bytes, %v: %.80s", len(data), err, data)
	}
	ours, err := ec2test.BootstrapOf(data)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := provider.ReadBootstrap(ours); err != nil || got.CA != b.CA {
		t.Errorf("the document: %v", err)
	}
	noise = make([]byte, maxSize)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	b.CA = hex.EncodeToString(noise)
	if _, err := userData(req, ""); !errors.Is(err, provider.ErrInvalid) {
		t.Errorf("too much: %v", err)
	}
}

// Credentials are read from the shard's secrets at each request, checked by their signature, and a
// refusal is of the region.
//
// proves PROV-5, SEC-6
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := account()
		c.Session = "t0ken"
		w := imagine(t, c)
		p := w.provider(func(c *Config) { c.Secrets.SessionToken = "token" })
		mistyped := func(name string) (string, error) {
			s, err := secrets(name)
			if name == "key" {
				s += "x"
			}
			return s, err
		}
		p.UseSecrets(mistyped)
		if _, err := p.List(t.Context(), "sh1"); provider.KindOf(err) != provider.Credentials {
			t.Errorf("a secret that is mistyped: %v", err)
		}
		p.UseSecrets(secrets)
		if _, err := p.List(t.Context(), "sh1"); err != nil {
			t.Fatal(err)
		}
		for what, change := range map[string]func(name string) (string, error){
			"a wrong key":      func(name string) (string, error) { s, err := secrets(name); return s + "x", err },
			"a secret missing": func(string) (string, error) { return "", errors.New("there is no such secret") },
		} {
			p.UseSecrets(change)
			if _, err := p.List(t.Context(), "sh1"); provider.KindOf(err) != provider.Credentials {
				t.Errorf("%s: %v", what, err)
			}
		}
		p.UseSecrets(secrets)
		if _, err := p.List(t.Context(), "sh1"); err != nil {
			t.Errorf("the right secrets again: %v", err)
		}
		w.server.Expire(true)
		if _, err := p.Create(t.Context(), request("web-1", "a")); provider.KindOf(err) != provider.Credentials {
			t.Errorf("an expired token: %v", err)
		}
		w.server.Expire(false)
		create(t, p, request("web-1", "a"))
	})
}

// Templates and configurations that cannot work are refused with what to do.
//
// proves PROV-3
func TestWhatIsRefused(t *testing.T) {
	p := open(t, configuration("http://ec2.test"))
	for says, change := range map[string]func(*provider.Template){
		"zone \"c\"":              func(t *provider.Template) { t.Zones = []string{"c"} },
		"instance_type":           func(t *provider.Template) { t.InstanceTypes = nil },
		"leasehold: and aws:":     func(t *provider.Template) { t.Tags = map[string]string{"leasehold:shard": "x"} },
		"template.settings.image": func(t *provider.Template) { t.Settings = map[string]any{"image": "debian"} },
		"settings.root_disk": func(t *provider.Template) {
			t.Settings = map[string]any{
				"root_disk":       map[string]any{"gib": 1},
				"launch_template": map[string]any{"id": "lt-01234567"},
			}
		},
		"template.settings": func(t *provider.Template) { t.Settings = map[string]any{"disk": 1} },
		"settings.launch_template": func(t *provider.Template) {
			t.Settings = map[string]any{"launch_template": map[string]any{}}
		},
	} {
		tpl := plain
		change(&tpl)
		if err := p.Validate(tpl); !errors.Is(err, provider.ErrInvalid) && provider.KindOf(err) != provider.Invalid ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	for says, change := range map[string]func(*Config){
		"region":           func(c *Config) { c.Region = "" },
		"zones":            func(c *Config) { c.Zones = nil },
		"at least one":     func(c *Config) { c.Zones = map[string]Zone{"a": {}} },
		"subnets":          func(c *Config) { c.Zones = map[string]Zone{"a": {Subnets: []string{"x"}}} },
		"endpoint":         func(c *Config) { c.Endpoint = "ec2.test" },
		"secrets":          func(c *Config) { c.Secrets = &Secrets{} },
		"calls_per_minute": func(c *Config) { c.CallsPerMinute = -1 },
		"consistency":      func(c *Config) { c.Consistency = "soon" },
		"security_groups":  func(c *Config) { c.SecurityGroups = []string{"web"} },
		"image":            func(c *Config) { c.Image = "debian" },
	} {
		c := configuration("http://ec2.test")
		change(&c)
		if _, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	var schema map[string]any
	if err := json.Unmarshal(p.Capabilities().Settings, &schema); err != nil || schema["type"] != "object" {
		t.Errorf("the schema: %v", err)
	}
}

// A redirect is not followed, also if it keeps the method, and no link-local address is asked.
//
// proves SEC-7
func TestOnlyTheEndpointIsReached(t *testing.T) {
	var asked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer elsewhere.Close()
	api := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer api.Close()
	for endpoint, says := range map[string]string{api.URL: "307", "http://169.254.169.254": "link-local"} {
		_, err := open(t, configuration(endpoint)).List(t.Context(), "sh1")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", endpoint, err, says)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests reached the address of the redirect", n)
	}
}
