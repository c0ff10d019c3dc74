//go:build nightly && !race

package web_test

import (
	"bytes"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/browser"
)

var shots = flag.String("shots", "", "directory for the pictures of TestShots; by default they are thrown away")

// fair writes a shard in which much goes on at once.
func (x *exhibit) fair() {
	x.t.Helper()
	x.crowd("web", 240)
	x.crowd("api", 12)
	x.crowd("jobs", 40)
	leader := store.Leader{Schema: store.Schema, Replica: "coord-a", Since: x.now.Add(-2 * time.Hour)}
	x.put(map[string]any{
		x.keys.Of(store.KindLeader) + "a": leader,
		x.keys.Of(store.KindReplicas) + "coord-a": store.Replica{
			Schema: store.Schema, ID: "coord-a", Address: "10.0.0.11:7420", Version: "v0.3.0", Since: x.now.Add(-2 * time.Hour),
		},
		x.keys.Of(store.KindReplicas) + "coord-b": store.Replica{
			Schema: store.Schema, ID: "coord-b", Address: "10.0.0.12:7420", Version: "v0.3.0", Since: x.now.Add(-26 * time.Hour),
		},
	})
	status := func(group string, size int, change func(*store.Status)) {
		g := store.DefaultGroup()
		g.Name, g.Provider, g.Size = group, "mem", size
		g.Complete()
		st := store.Status{
			Schema: store.Schema, Group: group, Accepted: &g, AcceptedRevision: 1 << 40, State: store.GroupStarted, Health: 100,
			Healthy: size, OK: true, Since: x.now.Add(-6 * 24 * time.Hour), Phases: map[store.Phase]int{store.Running: size},
		}
		change(&st)
		x.put(map[string]any{x.keys.Group(group): g, x.keys.Status(group): st})
	}
	status("web", 240, func(st *store.Status) {
		st.Health, st.Healthy, st.OK, st.Since = 96, 231, false, x.now.Add(-3*time.Minute)
		st.Phases = map[store.Phase]int{store.Running: 236, store.Booting: 2, store.Draining: 2}
		st.Verdicts = map[store.Verdict]int{store.Unhealthy: 3}
		st.Rollout = &store.Rollout{
			Template: "t9f3a77c1", Since: x.now.Add(-12 * time.Minute), Done: 87, Total: 240,
			Progress: x.now.Add(-40 * time.Second),
			Stalls:   &store.Timer{Start: x.now, For: store.Duration(9 * time.Minute)},
			Canary:   3, Canaries: []int{0, 1, 2}, Promoted: "all canaries have been healthy for 5m",
		}
		st.Accepted.Windows = []store.Window{
			{Days: []string{"mon", "tue", "wed", "thu", "fri"}, From: "22:00", For: store.Duration(4 * time.Hour)},
			{From: "02:00", For: store.Duration(time.Hour), Allow: []string{store.PlannedScaleDown}},
		}
		st.Blocked = []store.Blocked{{
			Rule: "ROLL-6", Kind: store.BlockedByWindow, Work: store.WorkRoll, Turn: true,
			Of: store.BlockedFacts{Group: "web", Opens: x.now.Add(7 * time.Hour)},
		}}
	})
	status("jobs", 40, func(st *store.Status) {
		least := 10
		st.Accepted.Scale = &store.ScaleSpec{
			Min: &least, Max: 60, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 60}},
		}
		st.Scale = &store.Scale{
			Size: 40, Wish: 52, Asks: 52, Stays: store.ScaleWindowUp, At: x.now.Add(-20 * time.Second),
			Rising:  &store.Timer{Start: x.now, For: store.Duration(2 * time.Minute)},
			Numbers: []store.ScaleNumber{{Metric: store.MetricCPU, Value: 78, Target: 60, Fresh: 40, Of: 40, Wish: 52}},
		}
	})
	x.tell(-9*time.Minute, store.JournalEntry{
		Rule: "AUTO-1", What: "size 40", Group: "jobs", Cause: store.Cause{
			Kind: store.CauseLoad, Count: 34, Limit: 40,
			Load: &store.CauseNumbers{Numbers: []store.ScaleNumber{
				{Metric: store.MetricCPU, Value: 71, Target: 60, Fresh: 34, Of: 34},
			}},
		},
	})
	status("api", 12, func(st *store.Status) {
		st.Health, st.Healthy, st.OK, st.Since = 50, 6, false, x.now.Add(-41*time.Second)
		st.Verdicts = map[store.Verdict]int{store.Lost: 6}
		st.Storm = &store.Storm{Since: x.now.Add(-41 * time.Second), Lost: 6, Of: 12, Calm: &store.Timer{
			Start: x.now, For: store.Duration(4 * time.Minute),
		}}
	})
	x.day("jobs", 40)
	id := func(group string, n int) string { return fmt.Sprintf("%s-%d-%06x", group, n, n*7919%(1<<24)) }
	for n := range 6 {
		if _, err := x.st.Commit(x.t.Context(),
			store.Txn{Writes: []store.Write{store.Delete(x.keys.Alive(id("api", n)))}}); err != nil {
			x.t.Fatal(err)
		}
		slot := n
		x.tell(-time.Duration(41-n)*time.Second, store.JournalEntry{
			Rule: "DET-17", What: "lost", Why: "its lease (17s) ran out, and that was confirmed", Group: "api",
			Instance: id("api", n),
			Slot:     &slot, Kind: store.EntryVerdict, Verdict: store.Lost, Revision: 51850,
			Evidence: []string{"stream lost since rev 51811", "the provider says running"},
		})
	}
	x.tell(-35*time.Second, store.JournalEntry{
		Rule: "SAFE-2", What: "storm", Why: "6 of 12 lost within 60s (limit 50%): none is replaced", Group: "api",
		Revision: 51862,
	})
	for n := range 87 {
		slot := n
		x.tell(-time.Duration(12*60-8*n)*time.Second-time.Millisecond, store.JournalEntry{
			Rule: "ROLL-2", What: "restarting", Why: "outdated: workload.run", Group: "web", Instance: id("web", n), Slot: &slot,
			From: store.Running, To: store.Stopping,
		})
		x.tell(-time.Duration(12*60-8*n-6)*time.Second-time.Millisecond, store.JournalEntry{
			Rule: "DET-9", What: "healthy", Why: "checks 2/2", Group: "web", Instance: id("web", n), Slot: &slot,
			From: store.Checking, To: store.Running,
		})
	}
	for n := range 87 {
		x.put(map[string]any{x.keys.Instance(id("web", n)): store.Instance{
			Schema: store.Schema, ID: id("web", n), Group: "web", Slot: n, Phase: store.Running, Managed: true,
			Zone: fmt.Sprint("eu-", n%3), Since: x.now.Add(-9 * time.Minute),
			Created: x.now.Add(-time.Duration(n) * time.Minute), Template: "t9f3a77c1",
			Spec: store.InstanceSpec{Provider: "mem"},
		}})
	}
	for n := range 2 {
		x.put(map[string]any{x.keys.Instance(id("web", 200+n)): store.Instance{
			Schema: store.Schema, ID: id("web", 200+n), Group: "web", Slot: 200 + n, Phase: store.Running, Managed: true,
			Zone: fmt.Sprint("eu-", (200+n)%3), Created: x.now.Add(-time.Hour), Template: "t1b2c3d4e",
			Spec: store.InstanceSpec{Provider: "mem"}, Protected: store.ProtectRemoval,
			Protection: &store.Protection{By: "ada", Why: "a dump is taken", Ends: &store.Timer{
				Start: x.now, For: store.Duration(3 * time.Hour),
			}},
		}})
	}
	for n, phase := range map[int]store.Phase{
		87: store.Stopping, 88: store.Booting, 140: store.Booting,
		31: store.Draining, 32: store.Draining,
	} {
		x.put(map[string]any{x.keys.Instance(id("web", n)): store.Instance{
			Schema: store.Schema, ID: id("web", n), Group: "web", Slot: n, Phase: phase, Managed: true,
			Zone:  fmt.Sprint("eu-", n%3),
			Since: x.now.Add(-9 * time.Second), Created: x.now.Add(-time.Duration(n) * time.Minute), Template: "t9f3a77c1",
			Spec: store.InstanceSpec{Provider: "mem"},
			Last: store.Decision{Rule: "ROLL-2", What: "restarting", Why: "outdated: workload.run"},
		}})
	}
	x.tell(-50*time.Second, store.JournalEntry{
		Rule: "SAFE-1", What: "no instance is judged lost",
		Why: "for 23s agents have time to return: etcd changed its leader",
		Cause: store.Cause{
			Kind: store.CauseDisturbed, Text: "etcd changed its leader", For: store.Duration(23 * time.Second),
		},
	})
	slot := 7
	for n, e := range []store.JournalEntry{
		{
			Rule: "DAY-6", What: "drill", Cause: store.Cause{Kind: store.CauseOrder, By: "ada"},
			Facts: []store.Fact{{Kind: store.FactRequest, Name: "order1", Text: string(store.DrillAgent)}},
		},
		{Kind: store.EntryVerdict, Rule: "DET-3", What: "suspect", Verdict: store.Suspect},
		{Kind: store.EntryVerdict, Rule: "DET-5", What: "live", Verdict: store.Live},
	} {
		e.Group, e.Instance, e.Slot = "api", id("api", 7), &slot
		x.tell(time.Duration(n-80)*time.Second, e)
	}
	x.shows("/events", "storm")
}

// day has the replica see how the load of a group rises for most of an hour.
func (x *exhibit) day(group string, size int) {
	x.t.Helper()
	v, _ := x.server.Views().Group(group, x.now)
	st := v.Known.Status.Record
	for step := range 50 {
		at := x.now.Add(time.Duration(step-50) * time.Minute)
		cpu := 38 + 40*math.Sin(float64(step)/16) + float64(step*7%5)
		records := map[string]any{}
		for n := range size {
			id := fmt.Sprintf("%s-%d-%06x", group, n, n*7919%(1<<24))
			records[x.keys.Report(id)] = store.Report{
				Schema: store.Schema, Instance: id, BootID: "b", Healthy: true,
				Received: at,
				Host:     store.HostReport{CPUPercent: cpu, MemoryPercent: 44},
			}
		}
		accepted, scale := *st.Accepted, *st.Scale
		accepted.Size = 34
		if step > 40 {
			accepted.Size = 40
		}
		scale.Asks = int(float64(accepted.Size) * cpu / 60)
		next := st
		next.Accepted, next.Scale = &accepted, &scale
		records[x.keys.Status(group)] = next
		x.put(records)
		x.server.Views().Sample(at)
	}
	x.put(map[string]any{x.keys.Status(group): st})
}

// inDocs are the pictures of docs/images: by the picture that each is the upper part of, its name
// and its height.
var inDocs = map[string]struct {
	name   string
	height int
}{
	"group-1440-light": {"page-group", 1260}, "storm-390-dark": {"page-storm-phone", 990},
	"scale-1440-light": {"page-load", 680},
}

// upper is the upper part of a picture.
func upper(t *testing.T, picture []byte, height int) []byte {
	t.Helper()
	whole, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	part := image.NewRGBA(image.Rect(0, 0, whole.Bounds().Dx(), min(height, whole.Bounds().Dy())))
	draw.Draw(part, part.Bounds(), whole, whole.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, part); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestShots takes a picture of each page in each look, for people to look at: make page-shots.
func TestShots(t *testing.T) {
	x := newExhibit(t)
	x.fair()
	dir := *shots
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(filepath.Join(dir, "docs"), 0o750); err != nil {
		t.Fatal(err)
	}
	b := browser.Open(t)
	for _, width := range []int64{1440, 390} {
		for _, scheme := range []string{"light", "dark"} {
			tab := b.Tab(t, browser.Look{Width: width, Height: 900, Dark: scheme == "dark"})
			for name, path := range map[string]string{
				"shard": "/", "group": "/g/web", "storm": "/g/api", "scale": "/g/jobs",
				"instance": "/i/api-0-000000", "events": "/events?group=api",
				"report": "/report", "report-group": "/report?group=api",
				"past": "/g/web?at=" + url.QueryEscape(x.now.Add(-5*time.Minute).Format(time.RFC3339Nano)),
			} {
				tab.Go(x.server.URL() + path)
				tab.Until("the page", "document.readyState === 'complete'")
				shot, picture := fmt.Sprintf("%s-%d-%s", name, width, scheme), tab.Picture()
				if err := os.WriteFile(filepath.Join(dir, shot+".png"), picture, 0o600); err != nil {
					t.Fatal(err)
				}
				if d, shown := inDocs[shot]; shown {
					file := filepath.Join(dir, "docs", d.name+".png")
					if err := os.WriteFile(file, upper(t, picture, d.height), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}
