package haproxy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
	"github.com/leasehold/leasehold/provider/balancer/haproxy"
	"github.com/leasehold/leasehold/provider/balancer/haproxy/haproxytest"
)

const shard = "sh1"

// membership returns the state of a member; the listing names every target.
func membership(t *testing.T, b *haproxy.Balancer, m balancer.Member) balancer.Membership {
	t.Helper()
	l, err := b.List(t.Context(), shard, []balancer.Member{m})
	if err != nil {
		t.Fatal(err)
	}
	return l.Of(m)
}

// A silent process neither confirms an instance nor delays its confirmation by others, and its
// members are unknown. When it answers again without its members, the instance is unconfirmed until
// it is added there. One process is reached by a unix socket, the other by TCP.
//
// proves LB-2, LB-3
func TestOneOfSeveralIsSilent(t *testing.T) {
	t.Parallel()
	here, there := haproxytest.Start(t, 0), haproxytest.Start(t, 0)
	b := open(t, haproxy.Config{
		Sockets: []string{"unix:" + here.Socket, there.TCP}, Server: quickChecks,
	})
	m := member(t, "web-1")
	if err := b.Add(t.Context(), shard, m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both confirm it", func() bool { return membership(t, b, m).Up == 2 })

	there.Stop()
	s := membership(t, b, m)
	if s.Silent != 1 || s.Answered != 1 || !s.Confirmed() || s.Drained() || s.Gone() {
		t.Errorf("with one of two silent: %+v", s)
	}
	other := member(t, "web-2")
	err := b.Add(t.Context(), shard, other)
	if err == nil || provider.KindOf(err) != provider.Temporary || !strings.Contains(err.Error(), there.TCP) {
		t.Errorf("Add with one of two silent: %v", err)
	}
	if s := membership(t, b, other); s.Ready != 1 {
		t.Errorf("the one that answers has it: %+v", s)
	}
	if err := b.Drain(t.Context(), shard, other); err == nil {
		t.Error("Drain with one of two silent succeeded")
	}
	eventually(t, "it drains where it can", func() bool { return membership(t, b, other).Draining == 1 })
	if s := membership(t, b, other); s.Drained() {
		t.Errorf("what a silent one has in use is unknown: %+v", s)
	}

	there.Run() // and has forgotten
	if s := membership(t, b, m); s.Silent != 0 || s.Confirmed() || s.InPlace() {
		t.Errorf("the one that returned has forgotten: %+v", s)
	}
	if err := b.Add(t.Context(), shard, m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both confirm it again", func() bool { return membership(t, b, m).Up == 2 })
	if s := membership(t, b, other); !s.Drained() {
		t.Errorf("the one that returned has not got it, and the other drained it: %+v", s)
	}
	here.Stop()
	there.Stop()
	if l, err := b.List(t.Context(), shard, nil); err == nil || provider.KindOf(err) != provider.Temporary {
		t.Errorf("List with both silent: %+v, %v", l, err)
	}
}

// A process that hangs delays no other process, and no later call.
//
// proves LB-3
func TestOneOfSeveralHangs(t *testing.T) {
	t.Parallel()
	good, bad := haproxytest.Start(t, 0), haproxytest.Start(t, 0)
	relay := haproxytest.NewRelay(t, bad)
	b := open(t, haproxy.Config{
		Sockets: []string{"unix:" + good.Socket, "unix:" + relay.Socket}, Server: quickChecks, Timeout: "2s",
	})
	relay.Set(haproxytest.Hang)
	m := member(t, "web-1")
	begun := time.Now()
	if err := b.Add(t.Context(), shard, m); err == nil {
		t.Error("Add with one that hangs succeeded")
	}
	eventually(t, "the other one confirms it", func() bool { return membership(t, b, m).Confirmed() })
	if took, most := time.Since(begun), 3*b.Capabilities().CallTimeout+10*time.Second; took > most {
		t.Errorf("it took %s", took)
	}
	relay.Set(haproxytest.Pass)
	if err := b.Add(t.Context(), shard, m); err != nil {
		t.Errorf("Add after it hung: %v", err)
	}
	eventually(t, "both confirm it", func() bool { return membership(t, b, m).Up == 2 })
}

// An impossible configuration is refused as invalid, with HAProxy's own words or with the next
// step.
//
// proves PROV-5
func TestWhatCannotWork(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 2)
	socket := []string{"unix:" + p.Socket}
	m := member(t, "web-1")
	for name, test := range map[string]struct {
		config haproxy.Config
		says   string
	}{
		"no backend":        {haproxy.Config{Backend: "shop"}, "no such backend"},
		"an unknown option": {haproxy.Config{Backend: "web", Server: "chekc"}, "unknown keyword 'chekc'"},
		"no slots":          {haproxy.Config{Backend: "web", Slots: "web-"}, "server-template"},
	} {
		test.config.Name, test.config.Sockets = "web", socket
		b, err := haproxy.New(test.config)
		if err != nil {
			t.Fatal(err)
		}
		err = b.Add(t.Context(), shard, m)
		if provider.KindOf(err) != provider.Invalid || !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v, want an invalid one that says %q", name, err, test.says)
		}
	}
	// Slots are used up, and become free again.
	b := open(t, haproxy.Config{Sockets: socket, Slots: "slot"})
	members := []balancer.Member{m, member(t, "web-2"), member(t, "web-3")}
	for i, m := range members {
		err := b.Add(t.Context(), shard, m)
		if full := provider.KindOf(err) == provider.Capacity; full != (i == 2) || err != nil && !full {
			t.Errorf("member %d of 2 slots: %v", i+1, err)
		}
	}
	if err := b.Remove(t.Context(), shard, members[0]); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(t.Context(), shard, members[2]); err != nil {
		t.Errorf("with a slot that came free: %v", err)
	}
	eventually(t, "it is in service", func() bool { return membership(t, b, members[2]).Confirmed() })
}

// Slots that lost their addresses in a reload send no request to a wrong member after the next Add.
//
// proves LB-3
func TestSlotsThatLostTheirAddresses(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 0)
	// A reload does not restore the addresses of this template: it has no name.
	p.Configure("  server-template slot 1-3 0.0.0.0:0 check inter 2s fastinter 50ms downinter 50ms " +
		"rise 2 fall 3 disabled")
	p.Reload()
	b := open(t, haproxy.Config{Sockets: []string{"unix:" + p.Socket}, Slots: "slot"})
	members := []balancer.Member{member(t, "web-1"), member(t, "web-2")}
	add := func() {
		for _, m := range members {
			if err := b.Add(t.Context(), shard, m); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range members {
			eventually(t, "it is in service", func() bool { return membership(t, b, m).Confirmed() })
		}
	}
	add()
	p.Save()
	p.Reload()
	for _, m := range members {
		if s := membership(t, b, m); s.Has != 0 {
			t.Fatalf("the reload kept the address after all: %+v", s)
		}
	}
	add()
	state, err := p.Ask("show servers state web")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(state, "\n") {
		if f := strings.Fields(line); len(f) > 6 && f[4] == "0.0.0.0" && f[6] != "5" {
			t.Errorf("a slot without an address is not in maintenance: %s", line)
		}
	}
}

// An instance with two slots, from two coordinators at once or by hand, has one after the next Add;
// Drain and Remove reach both.
//
// proves LB-3
func TestAnInstanceWithTwoSlots(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 4)
	b, m := open(t, haproxy.Config{Sockets: []string{"unix:" + p.Socket}, Slots: "slot"}), member(t, "web-1")
	second := func() {
		if err := b.Add(t.Context(), shard, m); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Ask(fmt.Sprintf("set server web/slot3 addr 127.0.0.1 port %d; set server web/slot3 state ready",
			m.Port)); err != nil {
			t.Fatal(err)
		}
		if s := membership(t, b, m); s.Several != 1 || s.InPlace() {
			t.Fatalf("with two slots: %+v", s)
		}
	}
	second()
	if err := b.Add(t.Context(), shard, m); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in service, once", func() bool { return membership(t, b, m).Confirmed() })
	second()
	if err := b.Drain(t.Context(), shard, m); err != nil {
		t.Fatal(err)
	}
	if s := membership(t, b, m); !s.Leaving() || s.Draining != 1 {
		t.Errorf("after a Drain: %+v", s)
	}
	if err := b.Remove(t.Context(), shard, m); err != nil {
		t.Fatal(err)
	}
	if s := membership(t, b, m); !s.Gone() {
		t.Errorf("after a Remove: %+v", s)
	}
}

// A member that no longer has a weight of its group gets HAProxy's own: the one of its
// configuration, or 1 for a server that was added, also with the weight of then.
//
// proves LB-1
func TestAWeightThatIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		slots, weight int
	}{"added servers": {0, 1}, "slots": {3, 1}, "slots with a weight": {3, 40}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := haproxytest.Start(t, want.slots)
			c := haproxy.Config{Sockets: []string{"unix:" + p.Socket}}
			if want.slots > 0 {
				c.Slots = "slot"
			}
			if want.weight > 1 {
				p.Configure(fmt.Sprintf("  default-server weight %d", want.weight))
				p.Reload()
			}
			b, m := open(t, c), member(t, "web-1")
			heavy := m
			heavy.Weight = 90
			if err := b.Add(t.Context(), shard, heavy); err != nil || !membership(t, b, heavy).InPlace() {
				t.Fatalf("Add with a weight: %v", err)
			}
			if membership(t, b, m).InPlace() {
				t.Error("it is in place with a weight that its group no longer sets")
			}
			for range 2 {
				if err := b.Add(t.Context(), shard, m); err != nil || !membership(t, b, m).InPlace() {
					t.Fatalf("Add without a weight: %v, %+v", err, membership(t, b, m))
				}
			}
			l, err := b.List(t.Context(), shard, []balancer.Member{m})
			if err != nil || l.Targets[0].Members[0].Weight != want.weight {
				t.Errorf("it has %+v, %v, want weight %d", l.Targets, err, want.weight)
			}
		})
	}
}

// The next pass restores a member that was disabled or removed by hand, and one whose call was
// interrupted.
//
// proves LB-3
func TestWhatIsDoneByHandIsMended(t *testing.T) {
	t.Parallel()
	for name, slots := range map[string]int{"added servers": 0, "slots": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := haproxytest.Start(t, slots)
			c, server := haproxy.Config{Sockets: []string{"unix:" + p.Socket}, Server: quickChecks}, "web/lh:sh1:web:web-1"
			last := "set server " + server + " state maint; del server " + server
			if slots > 0 {
				c.Slots, c.Server, server = "slot", "", "web/slot1"
				last = "set server web/slot2 state maint; del server web/slot2" // it is there by then
			}
			b, m := open(t, c), member(t, "web-1")
			for _, command := range []string{
				"set server " + server + " state maint",
				"set server " + server + " state drain",
				"disable health " + server,
				"set server " + server + " addr 127.0.0.9 port 9",
				last,
			} {
				if err := b.Add(t.Context(), shard, m); err != nil {
					t.Fatalf("before %q: %v", command, err)
				}
				eventually(t, "it is in service", func() bool { return membership(t, b, m).Confirmed() })
				if _, err := p.Ask(command); err != nil {
					t.Fatal(err)
				}
				if s := membership(t, b, m); s.InPlace() && s.Up > 0 {
					t.Errorf("after %q: %+v", command, s)
				}
			}
			if err := b.Add(t.Context(), shard, m); err != nil {
				t.Error(err)
			}
			eventually(t, "it is in service at the end", func() bool { return membership(t, b, m).Confirmed() })
			if slots > 0 {
				return
			}
			// A member that was moved is removed as it is listed.
			if _, err := p.Ask("set server " + server + " addr 127.0.0.9 port 9"); err != nil {
				t.Fatal(err)
			}
			if err := b.Remove(t.Context(), shard, m); err != nil || membership(t, b, m).Moved != 1 {
				t.Errorf("Remove of the member as recorded: %v, %+v", err, membership(t, b, m))
			}
			l, err := b.List(t.Context(), shard, nil)
			if err != nil || len(l.Has(m.Instance)) != 1 {
				t.Fatal(l, err)
			}
			if err := b.Remove(t.Context(), shard, l.Has(m.Instance)[0]); err != nil || !membership(t, b, m).Gone() {
				t.Errorf("Remove of the member as listed: %v, %+v", err, membership(t, b, m))
			}
		})
	}
}

// IPv6 works as IPv4 does, and one command reads many servers.
func TestManyServersAndIPv6(t *testing.T) {
	t.Parallel()
	p := haproxytest.Start(t, 0)
	b := open(t, haproxy.Config{Sockets: []string{"unix:" + p.Socket}})
	six := balancer.Member{Instance: "web-six", Address: "fd00::1:2", Port: 8080, Use: balancer.Use{Weight: 7}}
	if err := b.Add(t.Context(), shard, six); err != nil {
		t.Fatal(err)
	}
	if s := membership(t, b, six); !s.InPlace() {
		t.Errorf("IPv6: %+v", s)
	}
	var commands []string
	for i := range 300 {
		commands = append(commands, fmt.Sprintf("add server web/lh:%s:web:web-%d 10.0.0.1:%d check", shard, i, 1000+i))
	}
	for len(commands) > 0 {
		n := min(50, len(commands))
		if _, err := p.Ask(strings.Join(commands[:n], ";")); err != nil {
			t.Fatal(err)
		}
		commands = commands[n:]
	}
	l, err := b.List(t.Context(), shard, nil)
	if err != nil || len(l.Targets[0].Members) != 301 {
		t.Errorf("%d servers, %v", len(l.Targets[0].Members), err)
	}
	if err := b.Remove(t.Context(), shard, six); err != nil {
		t.Error(err)
	}
	if err := b.Remove(t.Context(), "another", six); err != nil {
		t.Error(err)
	}
}

// Impossible configurations are refused with the name of the wrong field.
//
// proves SEC-7
func TestConfigurationsThatAreRefused(t *testing.T) {
	t.Parallel()
	good := haproxy.Config{Name: "web", Sockets: []string{"unix:/run/haproxy.sock"}, Backend: "web"}
	if _, err := haproxy.New(good); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*haproxy.Config){
		"name: ":              func(c *haproxy.Config) { c.Name = "a:b" },
		"sockets: is missing": func(c *haproxy.Config) { c.Sockets = nil },
		"must be unix:/PATH":  func(c *haproxy.Config) { c.Sockets = []string{"/run/haproxy.sock"} },
		"at most 107 bytes":   func(c *haproxy.Config) { c.Sockets = []string{"unix:/" + strings.Repeat("x", 120)} },
		"HOST:PORT":           func(c *haproxy.Config) { c.Sockets = []string{"10.0.0.1:99999"} },
		"named twice":         func(c *haproxy.Config) { c.Sockets = append(c.Sockets, c.Sockets[0]) },
		"backend: ":           func(c *haproxy.Config) { c.Backend = "web; shutdown" },
		"slots: ":             func(c *haproxy.Config) { c.Slots = "a b" },
		"server: the options": func(c *haproxy.Config) { c.Slots, c.Server = "web-", "check" },
		"words of HAProxy's":  func(c *haproxy.Config) { c.Server = "check;shutdown" },
		"weight: ":            func(c *haproxy.Config) { c.Server = "check weight 10" },
		"fall: ":              func(c *haproxy.Config) { c.Server = "check fall 1" },
		"timeout: ":           func(c *haproxy.Config) { c.Timeout = "1h" },
	} {
		c := good
		change(&c)
		if _, err := haproxy.New(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	if err := open(t, good).Validate(balancer.Use{Weight: 257}); !errors.As(err, new(*provider.Error)) {
		t.Errorf("weight 257: %v", err)
	}
}

// proves SEC-7
func TestNoLinkLocalAddressIsReached(t *testing.T) {
	t.Parallel()
	b := open(t, haproxy.Config{Sockets: []string{"169.254.1.1:9999"}})
	l, err := b.List(t.Context(), "sh1", nil)
	if err == nil || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("%+v, %v", l, err)
	}
}
