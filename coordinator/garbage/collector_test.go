package garbage

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeHeap is a heap whose collections a test begins and ends.
type fakeHeap struct {
	mu     sync.Mutex
	is     size
	number uint64
	begun  int
	given  []int
	end    chan struct{}
}

func (h *fakeHeap) size() size {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.is
}

func (h *fakeHeap) collections() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.number
}

func (h *fakeHeap) collect() {
	h.mu.Lock()
	h.begun++
	h.is.now = h.is.kept
	h.mu.Unlock()
	<-h.end
}

func (h *fakeHeap) give(room int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.given = append(h.given, room)
}

func (h *fakeHeap) be(s size) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.is = s
}

// found ends the part of a collection for which reports wait.
func (h *fakeHeap) found() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
}

var full = size{kept: 1 << 30, now: 5 << 29, goal: 3 << 30}

// collecting runs a collector on a heap until the test ends.
func collecting(t *testing.T, bearable time.Duration) (*Collector, *fakeHeap) {
	h := &fakeHeap{end: make(chan struct{})}
	c := New(slog.New(slog.DiscardHandler))
	c.heap = h
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx, func() time.Duration { return bearable }) })
	t.Cleanup(func() {
		cancel()
		close(h.end)
		running.Wait()
	})
	return c, h
}

// reading reads everything from one of the collector's connections, and reports each piece.
func reading(t *testing.T, c *Collector) (theirs net.Conn, came <-chan string) {
	ours, theirs := net.Pipe()
	l := c.Listener(&oneConn{conn: ours})
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	pieces := make(chan string, 10)
	go func() {
		defer close(pieces)
		buffer := make([]byte, 100)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			pieces <- string(buffer[:n])
		}
	}()
	t.Cleanup(func() {
		_ = theirs.Close()
		for range pieces {
		}
	})
	return theirs, pieces
}

type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) { return l.conn, nil }

func say(t *testing.T, conn net.Conn, what string) {
	t.Helper()
	if _, err := conn.Write([]byte(what)); err != nil {
		t.Fatal(err)
	}
}

func TestReportsWaitWhileGarbageIsCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := collecting(t, time.Hour)
		theirs, came := reading(t, c)
		h.be(size{kept: 1 << 30, now: 1 << 30, goal: 3 << 30})
		<-time.After(2*look + time.Millisecond)
		say(t, theirs, "before")
		synctest.Wait()
		if len(came) != 1 || <-came != "before" {
			t.Fatal("a report waits although nothing is collected")
		}

		h.be(full)
		<-time.After(look)
		say(t, theirs, "meanwhile")
		synctest.Wait()
		if h.begun != 1 || len(came) != 0 {
			t.Fatalf("%d collections, %d reports came through", h.begun, len(came))
		}
		h.found()
		<-time.After(lookAgain)
		synctest.Wait()
		if len(came) != 1 || <-came != "meanwhile" {
			t.Fatal("a report waits although all that is kept has been found")
		}
	})
}

func TestReportsWaitNoLongerThanIsBorne(t *testing.T) {
	for _, one := range []struct{ bearable, most time.Duration }{{time.Second, time.Second}, {time.Hour, maxWait}} {
		synctest.Test(t, func(t *testing.T) {
			c, h := collecting(t, one.bearable)
			theirs, came := reading(t, c)
			h.be(full)
			<-time.After(2*look + time.Millisecond)
			say(t, theirs, "report")
			<-time.After(one.most - 2*time.Millisecond)
			synctest.Wait()
			if len(came) != 0 {
				t.Fatal("it did not wait")
			}
			<-time.After(2 * time.Millisecond)
			synctest.Wait()
			if len(came) != 1 {
				t.Fatalf("it waits for more than %s", one.most)
			}
			h.be(full)
			<-time.After(time.Minute)
			if h.begun != 1 {
				t.Fatalf("%d collections at once", h.begun)
			}
		})
	}
}

func TestWhatIsNoneOfOurBusiness(t *testing.T) {
	for name, s := range map[string]size{
		"a small heap":                    {kept: large - 1, now: 10 * large, goal: 11 * large},
		"one that an operator has sized":  {},
		"one with room for another while": {kept: 1 << 30, now: 2 << 30, goal: 3 << 30},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, h := collecting(t, time.Hour)
			h.be(s)
			<-time.After(time.Minute)
			synctest.Wait()
			if h.begun != 0 {
				t.Errorf("%s is collected", name)
			}
		})
	}
}

// A huge heap is collected more rarely, and a large one more often, than by Go, which has its own
// settings again at the end.
func TestRoomIsGivenByWhatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &fakeHeap{end: make(chan struct{})}
		c := New(slog.New(slog.DiscardHandler))
		c.heap = h
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { c.Run(ctx, func() time.Duration { return time.Hour }) })
		for _, kept := range []uint64{large - 1, large, huge - 1, huge, 2 * huge, large} {
			h.be(size{kept: kept})
			<-time.After(3 * look)
		}
		cancel()
		running.Wait()
		if !slices.Equal(h.given, []int{roomLarge, roomHuge, roomLarge, roomSmall}) {
			t.Errorf("given %v", h.given)
		}
	})
}

func TestGoReportsItsHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	h := goHeap{}
	before := h.collections()
	h.collect()
	if s := h.size(); s.kept == 0 || s.now == 0 || s.goal <= s.kept {
		t.Errorf("%+v", s)
	}
	if h.collections() == before {
		t.Error("a collection is not counted")
	}
}
