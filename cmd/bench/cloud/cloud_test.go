package cloud

import (
	"context"
	"errors"
	"net"
	"net/rpc"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
)

func opened(t *testing.T, instances ...string) (c *Cloud, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	c, err := Open(socket, instances)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, socket
}

func create(t *testing.T, p *Provider, instance string) {
	t.Helper()
	m, err := p.Create(t.Context(),
		provider.CreateRequest{Bootstrap: provider.Bootstrap{Instance: instance, Group: "g"}})
	if err != nil || m.Instance != instance || m.State != provider.StateRunning || m.Zone != Zone || m.Group != "g" {
		t.Errorf("Create of %s: %+v, %v", instance, m, err)
	}
}

// lists checks what a provider lists: instance and state.
func lists(t *testing.T, p *Provider, want map[string]provider.State) {
	t.Helper()
	machines, err := p.List(t.Context(), "shard1")
	if err != nil {
		t.Fatal(err)
	}
	if len(machines) != len(want) {
		t.Errorf("%d machines are listed, want %d", len(machines), len(want))
	}
	for _, m := range machines {
		if m.State != want[m.Instance] || m.Shard != "shard1" || m.Ref != "bench:"+m.Instance {
			t.Errorf("%+v is listed, want %s to be %q", m, m.Instance, want[m.Instance])
		}
	}
}

func told(t *testing.T, where <-chan string, want ...string) {
	t.Helper()
	var got []string
	for len(where) > 0 {
		got = append(got, <-where)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q are told, want %q", got, want)
	}
}

// Whatever one replica does, all of them see; and the bench hears once of each machine that
// begins or ends.
func TestAllSeeTheSameMachines(t *testing.T) {
	c, socket := opened(t, "a", "b")
	one, two := NewProvider(socket), NewProvider(socket)
	lists(t, one, map[string]provider.State{"a": provider.StateRunning, "b": provider.StateRunning})
	create(t, one, "c")
	create(t, two, "c") // as a leader does that does not know whether the last one did
	told(t, c.Made, "c")
	if err := errors.Join(two.Stop(t.Context(), "shard1", "a", 0),
		one.Stop(t.Context(), "shard1", "a", 0)); err != nil {
		t.Error(err)
	}
	told(t, c.Deleted, "a")
	stopped := map[string]provider.State{
		"a": provider.StateStopped, "b": provider.StateRunning,
		"c": provider.StateRunning,
	}
	lists(t, one, stopped)
	lists(t, two, stopped) // which had never listed before
	for _, id := range []string{"a", "b", "b", "unknown"} {
		if err := one.Delete(t.Context(), "shard1", id); err != nil {
			t.Errorf("Delete of %s: %v", id, err)
		}
	}
	told(t, c.Deleted, "b") // a had been told when it was stopped
	for _, p := range []*Provider{one, two, one} {
		lists(t, p, map[string]provider.State{"c": provider.StateRunning})
	}
	if n := c.Count(); n != 1 {
		t.Errorf("there are %d machines, want 1", n)
	}
}

// A list that is answered late hides nothing of what was made before it was asked for.
func TestListsThatOvertakeEachOther(t *testing.T) {
	c := &Cloud{state: map[string]provider.State{}}
	c.set("a", provider.StateRunning)
	slow := &slowCloud{cloudCalls: cloudCalls{c}, asked: make(chan chan struct{})}
	server := rpc.NewServer()
	if err := server.RegisterName("Cloud", slow); err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	defer here.Close()
	go server.ServeConn(there)
	p := NewProvider("")
	p.client = rpc.NewClient(here)

	var answers [2]chan []provider.Machine
	var asked [2]chan struct{}
	for i := range answers {
		if i == 1 {
			c.mu.Lock()
			c.set("b", provider.StateRunning) // before the second list is begun
			c.mu.Unlock()
		}
		answers[i] = make(chan []provider.Machine, 1)
		go func() {
			machines, err := p.List(t.Context(), "shard1")
			if err != nil {
				t.Error(err)
			}
			answers[i] <- machines
		}()
		asked[i] = <-slow.asked
	}
	for i, want := range []int{1, 2} {
		close(asked[i])
		if machines := <-answers[i]; len(machines) != want {
			t.Errorf("list %d has %d machines, want %d", i+1, len(machines), want)
		}
	}
}

// slowCloud counts the changes at once, and answers when it is told to.
type slowCloud struct {
	cloudCalls
	asked chan chan struct{}
}

func (s *slowCloud) Changed(from int, news *Changes) error {
	err := s.cloudCalls.Changed(from, news)
	answer := make(chan struct{})
	s.asked <- answer
	<-answer
	return err
}

// Calls end with the bench, and with the caller.
func TestCallsEnd(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	c, err := Open(socket, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := NewProvider(socket)
	for range cap(c.Made) { // without a reader
		c.Made <- "x"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Create(ctx, provider.CreateRequest{Bootstrap: provider.Bootstrap{Instance: "a"}}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("Create without a reader: %v, want a timeout", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := p.Create(t.Context(), provider.CreateRequest{Bootstrap: provider.Bootstrap{Instance: "b"}})
		ended <- err
	}()
	for c.Count() < 2 { // it is made, and no reader hears of it
		<-time.After(time.Millisecond)
	}
	c.Close()
	if err := <-ended; err == nil {
		t.Error("Create succeeded after the bench was over")
	}
	if _, err := NewProvider(socket).List(t.Context(), "shard1"); err == nil {
		t.Error("a cloud that is closed lists machines")
	}
}
