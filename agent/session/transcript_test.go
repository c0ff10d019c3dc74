package session

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

var update = flag.Bool("update", false, "write testdata/stories.txt instead of comparing it")

// TestTranscript plays the stories with everything that TestStories leaves out: what is remembered
// and logged, how warm connections are kept, when the lease began, and when the agent wants to
// wake. A change of any of these shows as a difference in testdata/stories.txt. go test
// ./agent/session -run TestTranscript -update rewrites it.
//
// proves DET-1, DET-14, DET-18, SAFE-9, SAFE-11
func TestTranscript(t *testing.T) {
	const file = "testdata/stories.txt"
	all := stories()
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&out, "# %s\n\n", name)
		tell(&out, all[name])
	}
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	read, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(read), "\n"), strings.Split(out.String(), "\n")
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			from := max(0, i-10)
			t.Fatalf("%s differs from line %d on (-update rewrites it)\nwant:\n%s\ngot:\n%s", file, i+1,
				strings.Join(want[from:min(len(want), i+3)], "\n"), strings.Join(got[from:min(len(got), i+3)], "\n"))
		}
	}
}

// tell plays a story and writes each step: the time, the event, the orders, and the resulting
// state.
func tell(out *strings.Builder, s story) {
	begin := time.Unix(0, 0)
	c, now := New(s.cfg), begin
	since := func(t time.Time) string {
		if t.IsZero() {
			return "never"
		}
		return t.Sub(begin).Round(time.Millisecond).String()
	}
	step := func(ev Event) {
		fmt.Fprintf(out, "%s %s\n", since(now), event(ev))
		for _, o := range c.Step(now, ev) {
			fmt.Fprintf(out, "\t%s\n", order(o))
		}
		from, ttl := c.Renewed()
		stream, serving := c.Serving()
		fmt.Fprintf(out, "\t- lease since %s for %s; serving %d %t; next %s\n", since(from), ttl, stream, serving,
			since(c.Wake()))
	}
	for _, s := range append(s.begin, s.steps...) {
		until := now.Add(s.after)
		for s.after > 0 && !c.Wake().IsZero() && c.Wake().Before(until.Add(-tolerance)) {
			now = c.Wake()
			step(nil)
		}
		now = until
		step(s.ev)
	}
	now = now.Add(time.Second)
	fmt.Fprintf(out, "%s leave\n", since(now))
	for _, o := range c.Leave(protocol.Goodbye_SHUTDOWN, "end of the story") {
		fmt.Fprintf(out, "\t%s\n", order(o))
	}
	stream, serving := c.Serving()
	fmt.Fprintf(out, "\t- serving %d %t; next %s\n\n", stream, serving, since(c.Wake()))
}

func event(ev Event) string {
	switch ev := ev.(type) {
	case nil:
		return "-"
	case Ended:
		return fmt.Sprintf("stream %d ended: %v", ev.Stream, ev.Err)
	case Changed:
		return "something changed"
	case Heard:
		// Not the message's own text: protobuf varies its blanks on purpose.
		kind := strings.TrimPrefix(fmt.Sprintf("%T", ev.Message.GetKind()), "*protocol.GatewayMessage_")
		return fmt.Sprintf("stream %d: %s", ev.Stream, kind)
	}
	return fmt.Sprintf("%T", ev)
}

func order(o Order) string {
	switch o := o.(type) {
	case Remember:
		m := o.Memory
		return fmt.Sprintf("remember epoch %d, lease %d, replicas %v, retired %t", m.Epoch, m.Lease, m.Replicas,
			m.Condemned.Holds())
	case Open:
		return fmt.Sprintf("open stream %d to %s: epoch %d, lease %d", o.Stream, o.Address, o.Epoch, o.Lease)
	case Report:
		return fmt.Sprintf("report %d on stream %d", o.Sequence, o.Stream)
	case Close:
		return fmt.Sprintf("close stream %d, goodbye %s, why %q, keep the connection %t", o.Stream, o.Goodbye, o.Why,
			o.Keep)
	case Warm:
		return fmt.Sprintf("keep a connection to %q, after %s", o.Address, o.After.Round(time.Millisecond))
	case Workload:
		return fmt.Sprintf("workload may run: %t, why %q", o.Run, o.Why)
	case Note:
		return fmt.Sprintf("note (warn %t) %q, replica %q, why %q", o.Warn, o.Text, o.Replica, o.Why)
	}
	return fmt.Sprintf("%T", o)
}
