//go:build nightly

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// span is a time that was measured. In JSON it is seconds.
type span time.Duration

func (s span) String() string { return fmt.Sprintf("%.2fs", time.Duration(s).Seconds()) }

// MarshalJSON writes seconds, to the millisecond.
func (s span) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.3f", time.Duration(s).Seconds()), nil
}

// kill is what became of one: all times count from the signal.
type kill struct {
	Leader   string `json:"leader"`
	Next     string `json:"next"`
	InFlight int    `json:"in_flight"` // operations
	UnderWay int    `json:"under_way"` // calls, by the provider's count
	Served   int    `json:"served"`    // agents that had their stream with it

	Elected span   `json:"elected"` // another's key was first in line
	Wrote   span   `json:"wrote"`   // its first entry in the journal
	Acted   span   `json:"acted"`   // its first change of an instance's record
	Called  span   `json:"called"`  // its first call, as the provider saw it
	Back    []span `json:"back"`    // each of those agents was served by another
	Done    span   `json:"done"`    // all operations were carried out, and everybody was there again
}

func (k kill) String() string {
	return fmt.Sprintf("%s led with %d operations in flight, %d calls under way and %d agents; "+
		"%s was elected after %s, wrote after %s, acted after %s, called after %s; agents back after %s; all done after %s",
		k.Leader, k.InFlight, k.UnderWay, k.Served, k.Next, k.Elected, k.Wrote, k.Acted, k.Called, last(k.Back), k.Done)
}

func last(all []span) span {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

// figures are what was measured, and what was counted.
type figures struct {
	Agents     int  `json:"agents"`
	Operations int  `json:"operations"`
	Session    span `json:"session"` // TTL of the replicas' sessions
	Still      span `json:"still"`   // for so long at a time etcd's disk took no write

	LoadBefore string `json:"load_before"` // of the machine: over one minute, and five
	LoadAfter  string `json:"load_after"`
	Starved    span   `json:"starved"` // the agents' process did not get to run for so long

	Deposed    int      `json:"deposed"` // leaders that lost their place without having been killed
	LeasesLost []string `json:"leases_lost"`
	Judged     []string `json:"judged"`

	Counted     bool     `json:"counted"` // what follows; else something went wrong before
	Double      []string `json:"double"`
	Overlapping []string `json:"overlapping"`
	Made        int      `json:"made"`        // machines
	AskedAgain  int      `json:"asked_again"` // machines that were asked for more than once, and made once

	Kills    []kill `json:"kills"`
	Resigned []kill `json:"resigned"` // the same, of leaders that were told to end
}

// rows are the times of all kills or resignations, by what was measured.
func rows(kills []kill) (names []string, times [][]span) {
	row := func(name string, of func(kill) []span) {
		var all []span
		for _, k := range kills {
			all = append(all, of(k)...)
		}
		names, times = append(names, name), append(times, all)
	}
	one := func(of func(kill) span) func(kill) []span { return func(k kill) []span { return []span{of(k)} } }
	row("another leads", one(func(k kill) span { return k.Elected }))
	row("its first entry in the journal", one(func(k kill) span { return k.Wrote }))
	row("its first change of an instance", one(func(k kill) span { return k.Acted }))
	row("its first call of the provider", one(func(k kill) span { return k.Called }))
	row("from being first in line to that call", one(func(k kill) span { return k.Called - k.Elected }))
	row("an agent of the killed one served again", func(k kill) []span { return k.Back })
	row("the last of them", one(func(k kill) span { return last(k.Back) }))
	row("all operations carried out", one(func(k kill) span { return k.Done }))
	return names, times
}

func (f figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d kills, %d agents, %d operations in flight, sessions of %s; "+
		"etcd's disk stands still for %s at a time; load %s before, %s after\n%d leaders were deposed that lived; "+
		"the agents did not get to run for %s at most\n",
		len(f.Kills), f.Agents, f.Operations, f.Session, f.Still, f.LoadBefore, f.LoadAfter, f.Deposed, f.Starved)
	for _, signal := range []struct {
		name  string
		kills []kill
	}{{"SIGKILL", f.Kills}, {"SIGTERM", f.Resigned}} {
		fmt.Fprintf(&b, "%-42s %6s %8s %8s %8s %8s\n", "time from "+signal.name+" until", "n", "p50", "p90", "p99", "max")
		names, times := rows(signal.kills)
		for i, name := range names {
			fmt.Fprintf(&b, "%-42s %6d %8s %8s %8s %8s\n", name, len(times[i]), quantile(times[i], 50),
				quantile(times[i], 90), quantile(times[i], 99), last(times[i]))
		}
	}
	if !f.Counted {
		fmt.Fprintf(&b, "leases lost %d, instances judged %d; it ended before machines and calls were counted",
			len(f.LeasesLost), len(f.Judged))
		return b.String()
	}
	fmt.Fprintf(&b,
		"leases lost %d, instances judged %d, operations carried out twice %d, calls that overlapped %d; "+
			"%d machines made, %d of them asked for again",
		len(f.LeasesLost), len(f.Judged), len(f.Double), len(f.Overlapping), f.Made, f.AskedAgain)
	return b.String()
}

// quantile is a time that so many of a hundred do not exceed: one that was measured. Of fewer than
// a hundred the 99th is the longest.
func quantile(all []span, percent int) span {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[(len(sorted)*percent+99)/100-1]
}

func (f *figures) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// load is how busy the machine is.
func load(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Error(err)
		return ""
	}
	return strings.Join(strings.Fields(string(text))[:2], " ")
}
