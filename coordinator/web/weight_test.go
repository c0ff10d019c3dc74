package web_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// crowd writes a group of many instances, at once.
func (x *exhibit) crowd(name string, size int) {
	x.t.Helper()
	x.group(name, 0)
	for from := 0; from < size; from += 40 {
		records := map[string]any{}
		for n := from; n < min(size, from+40); n++ {
			id := fmt.Sprintf("%s-%d-%06x", name, n, n*7919%(1<<24))
			records[x.keys.Instance(id)] = store.Instance{
				Schema: store.Schema, ID: id, Group: name, Slot: n, Phase: store.Running, Managed: true,
				Zone:  fmt.Sprint("eu-", n%3),
				Since: x.now.Add(-time.Hour), Created: x.now.Add(-time.Duration(n) * time.Minute), Template: "t1b2c3d4e",
				Spec: store.InstanceSpec{Provider: "mem"}, Address: fmt.Sprintf("10.0.%d.%d", n/256, n%256),
			}
			records[x.keys.Alive(id)] = store.Alive{
				Schema: store.Schema, Instance: id, BootID: "b", State: store.StreamOpen, Since: x.now,
			}
			records[x.keys.Report(id)] = store.Report{
				Schema: store.Schema, Instance: id, BootID: "b", Healthy: n%97 != 0,
				Why: "http:8080: 500", Received: x.now,
			}
		}
		x.put(records)
	}
}

// proves WEB-1: a page of a thousand instances, with all that it loads, is 150 KB at most
func TestPageWeight(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.crowd("web", 1000)
	asked := with("Accept-Encoding", "gzip")
	_, small, h := x.get("/g/web", asked)
	z, err := gzip.NewReader(strings.NewReader(small))
	if err != nil || h.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%v: %v", h, err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(body), `class="live"`); n < 900 {
		t.Errorf("%d live cells", n)
	}
	sum := len(small)
	for _, m := range regexp.MustCompile(`(?:src|href)="(/(?:page|icon)-[^"]+)"`).FindAllStringSubmatch(string(body), -1) {
		_, text, _ := x.get(m[1], asked)
		sum += len(text)
	}
	t.Logf("a page of 1,000 instances: %d bytes compressed with all that it loads, %d as a document", sum, len(body))
	if sum > 150_000 {
		t.Errorf("%d bytes", sum)
	}
}

// mostUpdate is how large an update may be in which so many of a thousand instances change.
var mostUpdate = map[int]int{1: 6_000, 10: 24_000}

// proves WEB-1: an update has what changed, and does not grow with the group
func TestUpdatesAreSmall(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.crowd("web", 1000)
	for n := range 200 {
		x.tell(-time.Duration(n)*15*time.Second, store.JournalEntry{
			Rule: []string{"DET-9", "ROLL-1", "HEAL-2"}[n%3], What: "healthy", Why: "checks 2/2", Group: "web",
			Instance: fmt.Sprintf("web-%d-%06x", n, n*7919%(1<<24)),
		})
	}
	for minute := range 20 {
		for from := 0; from < 120; from += 40 {
			records := map[string]any{}
			for n := from; n < from+40; n++ {
				id := fmt.Sprintf("web-%d-%06x", n, n*7919%(1<<24))
				r := store.Report{Schema: store.Schema, Instance: id, BootID: "b", Healthy: n%97 != 0, Received: x.now}
				r.Host.CPUPercent, r.Host.MemoryPercent = float64((n*31+minute*17)%100), 40
				records[x.keys.Report(id)] = r
			}
			x.put(records)
		}
		x.server.Views().Sample(x.now.Add(time.Duration(minute-20) * time.Minute))
	}
	x.shows("/g/web", "checks 2/2")
	l := x.listen(x.address("/g/web"))
	first, _ := l.next()
	t.Logf("what the stream begins with: %d bytes", first.size)
	slot := 500
	for _, changed := range []int{1, 10} {
		records := map[string]any{}
		for range changed {
			slot++
			id := fmt.Sprintf("web-%d-%06x", slot, slot*7919%(1<<24))
			records[x.keys.Instance(id)] = store.Instance{
				Schema: store.Schema, ID: id, Group: "web", Slot: slot, Phase: store.Draining, Managed: true,
				Zone: fmt.Sprint("eu-", slot%3), Since: x.now, Created: x.now, Template: "t1b2c3d4e",
				Spec: store.InstanceSpec{Provider: "mem"},
			}
		}
		x.put(records)
		m := l.until("the change", func(m message) bool { return m.has(fmt.Sprint("s-", slot), "leaving") })
		t.Logf("%d of 1,000 instances change: %d bytes", changed, m.size)
		if m.size > mostUpdate[changed] {
			for _, c := range m.Changes {
				t.Logf("%s in %s: %d bytes", c.ID, c.In, len(c.HTML))
			}
			t.Errorf("%d of 1,000 instances change: %d bytes, at most %d are right", changed, m.size, mostUpdate[changed])
		}
	}
}

// proves WEB-1: a shard of 200 groups is shown, and one that changes is sent alone
func TestManyGroups(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	for n := range 200 {
		x.group(fmt.Sprint("g", n), 0)
	}
	_, body, _ := x.get("/")
	if n := strings.Count(body, `<tr id="g-g`); n != 200 {
		t.Fatalf("%d groups are shown", n)
	}
	l := x.listen(x.address("/"))
	if first, _ := l.next(); len(first.Changes) > 0 {
		t.Errorf("to a reader that has all: %+v", first)
	}
	x.storm("g7", 4, &store.Storm{Since: x.now, Lost: 3, Of: 4})
	m := l.until("the storm", func(m message) bool { return m.has("g-g7", "g7") })
	t.Logf("1 of 200 groups changes: %d bytes of %d", m.size, len(body))
	if m.size > 8_000 {
		t.Errorf("%d bytes: %+v", m.size, m)
	}
}

// BenchmarkPage renders the page of a group, as often as it changes.
func BenchmarkPage(b *testing.B) {
	for _, size := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			x := newExhibit(b)
			x.crowd("web", size)
			b.ResetTimer()
			for b.Loop() {
				x.get("/g/web")
			}
		})
	}
}

// BenchmarkReaders changes twenty of a thousand instances again and again while 50 streams are
// read, and reports how much of a processor that takes: server, cache, store and readers together.
func BenchmarkReaders(b *testing.B) {
	x := newExhibit(b)
	x.crowd("web", 1000)
	const readers = 50
	heard := make(chan struct{}, readers)
	for range readers {
		l := x.listen("/live?page=/g/web")
		go func() {
			for {
				m, open := l.next()
				if !open {
					return
				}
				if m.event == "delta" {
					heard <- struct{}{}
				}
			}
		}()
	}
	begun, used := time.Now(), processorTime(b)
	for n := 0; b.Loop(); n++ {
		records := map[string]any{}
		for i := range 20 {
			slot := (n*20 + i) % 1000
			id := fmt.Sprintf("web-%d-%06x", slot, slot*7919%(1<<24))
			records[x.keys.Instance(id)] = store.Instance{
				Schema: store.Schema, ID: id, Group: "web", Slot: slot, Phase: []store.Phase{store.Stopping, store.Running}[n/50%2],
				Managed: true, Zone: fmt.Sprint("eu-", slot%3), Created: x.now, Spec: store.InstanceSpec{Provider: "mem"},
			}
		}
		x.put(records)
		for range readers {
			<-heard
		}
	}
	b.ReportMetric(100*(processorTime(b)-used).Seconds()/time.Since(begun).Seconds(), "%cpu")
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
