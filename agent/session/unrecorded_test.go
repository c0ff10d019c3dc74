package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// courseOfUnknown plays an agent whose instance has no record: each hello is refused. It returns
// for each who was asked, after which wait, and whether its connection was kept afterwards.
func courseOfUnknown(tries int, refuse func(Stream) Event) []string {
	cfg := ordered("a", "b", "c")
	cfg.Rand = func() float64 { return 0.5 }
	c := New(cfg)
	now := time.Now()
	last := now
	var course []string
	var stream Open
	open := func(orders []Order) {
		for _, o := range orders {
			if o, ok := o.(Open); ok {
				stream = o
			}
		}
	}
	open(c.Step(now, nil))
	for range tries {
		line := fmt.Sprintf("%s after %s", stream.Address, now.Sub(last))
		last = now
		before := stream.Stream
		orders := c.Step(now, refuse(before))
		for _, o := range orders {
			if o, ok := o.(Close); ok && o.Keep {
				line += ", kept"
			}
		}
		open(orders)
		for stream.Stream == before {
			now = c.Wake()
			open(c.Step(now, nil))
		}
		course = append(course, line)
	}
	return course
}

// An agent without a record asks all replicas first, then mostly the one whose connection it has,
// and all of them once in a while.
//
// proves SAFE-14
func TestTheCourseOfAnAgentWithoutARecord(t *testing.T) {
	got := courseOfUnknown(20, unrecorded)
	want := strings.Split(strings.TrimSpace(`
a after 0s, kept
c after 0s
b after 0s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
a after 0s
c after 0s
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
b after 21.25s, kept
a after 0s
c after 0s
b after 21.25s, kept
b after 21.25s, kept
`), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A replica of an earlier release names no time and ends the connection.
//
// proves SAFE-14
func TestAReplicaThatNamesNoTimeKeepsNoConnection(t *testing.T) {
	unnamed := func(s Stream) Event {
		return Heard{s, &message{Kind: &protocol.GatewayMessage_Refused{
			Refused: &protocol.Refused{Reason: protocol.Refused_UNKNOWN},
		}}}
	}
	got := courseOfUnknown(12, unnamed)
	want := strings.Split(strings.TrimSpace(`
a after 0s
c after 0s
b after 0s
b after 22.5s
b after 22.5s
b after 22.5s
b after 22.5s
b after 22.5s
a after 0s
c after 0s
b after 22.5s
b after 22.5s
`), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Only a record at deleting, or a note of its deletion, condemns an instance; both carry a
// revision.
//
// proves SAFE-14, DET-18
func TestWhatCondemnsAnInstance(t *testing.T) {
	for phase, holds := range map[string]bool{
		protocol.PhaseDeleting: true, protocol.PhaseGone: true, "": false, "running": false, "draining": false,
	} {
		if (Condemnation{Revision: 7, Phase: phase}).Holds() != holds {
			t.Errorf("phase %q at revision 7: want %t", phase, holds)
		}
		if (Condemnation{Phase: phase}).Holds() {
			t.Errorf("phase %q without a revision condemns", phase)
		}
	}
}
