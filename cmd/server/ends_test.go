package server

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The ends of parts are counted for as long as one follows another within a day. What cannot be
// read or written hinders nothing.
//
// proves DAY-3
func TestEndsOfParts(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var log bytes.Buffer
	p := Place{Dir: t.TempDir()}
	e := &ends{place: p, log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	if all := p.ended(); len(all) != 0 {
		t.Errorf("before the first end: %+v", all)
	}
	began := now
	e.add("replica", "exit status 2", "")
	e.done.Wait()
	now = now.Add(store.EndedFor - time.Second)
	e.add("member", "signal: killed\nit may have run out of memory", "look")
	e.done.Wait()
	e.add("replica", strings.Repeat("€", longestWhy), "")
	e.done.Wait()
	all := p.ended()
	if len(all) != 2 {
		t.Fatalf("%+v", all)
	}
	want := store.PartEnds{
		Part: "member", Times: 1, Since: now, Last: now, Why: "signal: killed it may have run out of memory", Next: "look",
	}
	if all[0] != want {
		t.Errorf("the member: %+v", all[0])
	}
	if r := all[1]; r.Times != 2 || r.Since != began || r.Last != now ||
		r.Why != strings.Repeat("€", longestWhy/len("€")) {
		t.Errorf("the replica: %+v", r)
	}
	now = now.Add(store.EndedFor)
	e.add("member", "exit status 1", "")
	e.done.Wait()
	if all := p.ended(); len(all) != 1 || all[0].Times != 1 || all[0].Since != now {
		t.Errorf("after a day: %+v", all)
	}
	if err := os.WriteFile(p.ends(), []byte("}"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.add("member", "exit status 1", "")
	e.done.Wait()
	if all := p.ended(); len(all) != 1 || log.Len() > 0 {
		t.Errorf("after a file that could not be read: %+v\n%s", all, log.String())
	}
	e.place.Dir += "/none"
	e.add("member", "exit status 1", "")
	e.done.Wait()
	if !strings.Contains(log.String(), "status will not know") {
		t.Errorf("the log: %s", log.String())
	}
}

// A supervisor that was killed is recorded by the next one of the same boot. One that ended in
// order is not, nor is one that a restart of the machine ended.
//
// proves DAY-3
func TestASupervisorThatWasKilled(t *testing.T) {
	p := Place{Dir: t.TempDir()}
	e := &ends{place: p, log: slog.New(slog.DiscardHandler), now: time.Now}
	begin := func(what string, want int) (over func()) {
		t.Helper()
		over = e.begin()
		e.done.Wait()
		all := p.ended()
		times := 0
		for _, end := range all {
			times += end.Times
		}
		if times != want || want > 0 && all[0].Part != supervisor {
			t.Errorf("%s: %+v, want %d", what, all, want)
		}
		return over
	}
	begin("the first", 0)()
	over := begin("after one that ended in order", 0)
	note, err := os.ReadFile(p.running())
	if err != nil || len(note) == 0 {
		t.Fatalf("the one that runs has the note %q, %v", note, err)
	}
	over()
	for i := range 2 {
		if err := os.WriteFile(p.running(), note, 0o600); err != nil { // as one that was killed leaves it
			t.Fatal(err)
		}
		begin("after one that was killed", i+1)()
	}
	if err := os.WriteFile(p.running(), []byte("another boot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	begin("after a restart of the machine", 2)()
	e.place.Dir += "/none"
	e.begin()() // hinders nothing
}

// A disk that hangs holds up no part: ends wait for it, but no more of them than memory is for.
//
// proves DAY-3
func TestNoPartWaitsForADiskThatHangs(t *testing.T) {
	var log bytes.Buffer
	p := Place{Dir: t.TempDir()}
	e := &ends{place: p, log: slog.New(slog.NewTextHandler(&log, nil)), now: time.Now}
	if err := syscall.Mkfifo(p.ends(), 0o600); err != nil { // reading it waits for a writer
		t.Fatal(err)
	}
	for range 2*maxPending + 1 {
		e.add("replica", "exit status 2", "")
	}
	if !strings.Contains(log.String(), "the disk hangs") {
		t.Errorf("it did not say that ends are lost: %s", log.String())
	}
	f, err := os.OpenFile(filepath.Clean(p.ends()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	e.done.Wait()
	if all := p.ended(); len(all) != 1 || all[0].Times < maxPending || all[0].Times > 2*maxPending {
		t.Errorf("once the disk works: %+v", all)
	}
}
