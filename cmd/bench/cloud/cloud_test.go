package cloud

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake/socket"
)

func opened(t *testing.T, instances ...string) (c *Cloud, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	c, err := Open(t.Context(), path, "shard1", instances)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, path
}

func request(instance string) provider.CreateRequest {
	return provider.CreateRequest{
		Zone: Zone, Bootstrap: provider.Bootstrap{Instance: instance, Group: "g", Shard: "shard1"},
	}
}

func create(t *testing.T, p *Provider, instance string) {
	t.Helper()
	m, err := p.Create(t.Context(), request(instance))
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
		if m.State != want[m.Instance] || m.Shard != "shard1" {
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
	c, path := opened(t, "a", "b")
	one, two := NewProvider(path), NewProvider(path)
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
	told(t, c.Deleted, "b") // a was reported when it was stopped
	for _, p := range []*Provider{one, two, one} {
		lists(t, p, map[string]provider.State{"c": provider.StateRunning})
	}
}

// A list that is answered late hides nothing of what was made before it was asked for.
func TestListsThatOvertakeEachOther(t *testing.T) {
	c, _ := opened(t, "a")
	slow := &slowFeed{Feed: Feed{c}, asked: make(chan chan struct{})}
	path := filepath.Join(t.TempDir(), "slow")
	server, err := socket.Listen(t.Context(), path, map[string]any{"Feed": slow})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := NewProvider(path)

	var answers [2]chan []provider.Machine
	var asked [2]chan struct{}
	for i := range answers {
		if i == 1 { // before the second list is begun
			if _, err := c.machines.Create(t.Context(), request("b")); err != nil {
				t.Fatal(err)
			}
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

// slowFeed counts the changes at once, and answers when it is told to.
type slowFeed struct {
	Feed
	asked chan chan struct{}
}

func (s *slowFeed) Changed(from int, news *Changes) error {
	err := s.Feed.Changed(from, news)
	answer := make(chan struct{})
	s.asked <- answer
	<-answer
	return err
}

// Calls end with the bench, and with the caller.
func TestCallsEnd(t *testing.T) {
	c, path := opened(t)
	p := NewProvider(path)
	for range cap(c.Made) { // without a reader
		c.Made <- "x"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := p.Create(ctx, request("a")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Create without a reader: %v, want the end of its time", err)
	}
	c.Close() // which waits for no reader
	if _, err := p.List(t.Context(), "shard1"); err == nil {
		t.Error("a cloud that is closed lists machines")
	}
}
