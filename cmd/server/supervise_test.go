package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lines collects the output of parts.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) await(t *testing.T, what string, n int) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Count(text, what) >= n {
			return
		}
		select {
		case <-l.news:
		case <-late:
			t.Fatalf("%q is missing:\n%s", what, text)
		}
	}
}

// TestPart is not a test but a part, in a process of its own. Its argument says what it does.
func TestPart(t *testing.T) {
	how := os.Getenv("PART_OF_A_TEST")
	if how == "" {
		return
	}
	to, err := openPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Printf("part %s began\n", how)
	to.send(message{Ready: "here"})
	to.send(message{Alive: true})
	if how == "killed" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	var again <-chan time.Time // never, where it hangs
	if how == "works" {
		again = time.Tick(10 * time.Millisecond)
	}
	for range again {
		to.send(message{Alive: true})
	}
}

// A long reason for an end arrives whole, and one that is too long keeps no part from writing.
//
// proves DAY-3
func TestLongMessagesOfAPart(t *testing.T) {
	long, err := json.Marshal(message{What: strings.Repeat("x", 100_000)})
	if err != nil {
		t.Fatal(err)
	}
	var heard []message
	receive(strings.NewReader(string(long)+"\n"+`{"alive":true}`+"\n"), func(m message) { heard = append(heard, m) })
	if len(heard) != 2 || len(heard[0].What) != 100_000 || !heard[1].Alive {
		t.Errorf("received %d messages", len(heard))
	}
	rest := strings.NewReader(strings.Repeat("x", 3*maxMessage) + "\n")
	receive(rest, func(message) { t.Error("received a message that is too long") })
	if rest.Len() != 0 {
		t.Errorf("%d bytes were not read, and a part waits to write them", rest.Len())
	}
}

// A part that hangs is ended and started again, and writes its goroutines to the log. One that the
// kernel kills is started again, and the log says that memory may be the reason. Both are recorded;
// an end that the supervisor ordered is not. The other part continues, and the supervisor's loops
// make progress. A part ends with its supervisor.
//
// proves DAY-1, DAY-3, DAY-4
func TestPartsThatHangOrAreKilled(t *testing.T) {
	printed := &lines{news: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var parts kept
	var running sync.WaitGroup
	ended := make(chan string, 100)
	for how, limit := range map[string]time.Duration{
		"hangs": 200 * time.Millisecond, "works": time.Minute, "killed": time.Minute,
	} {
		p := &part{
			name: how, args: []string{"-test.run=^TestPart$", "-test.v"}, env: []string{"PART_OF_A_TEST=" + how},
			out: printed, log: slog.New(slog.NewTextHandler(printed, nil)), hang: limit,
			ready: make(chan string, 1), turns: make(chan struct{}),
			ended: func(part, why, next string) { ended <- part + ": " + why + ": " + next },
		}
		parts.add(p)
		running.Go(func() {
			if err := p.keep(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	printed.await(t, "part hangs began", 2)
	printed.await(t, "part of the server does not answer", 1)
	printed.await(t, "goroutine ", 1)
	printed.await(t, "part killed began", 2)
	printed.await(t, "part=killed how=\"signal: killed\" why=\"it may have run out of memory\"", 1)
	asking, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !parts.turning(asking) {
		t.Error("the supervisor's loops do not turn")
	}
	end()
	running.Wait()
	close(ended)
	said := map[string]bool{}
	for e := range ended {
		said[e] = true
	}
	const killed = "killed: signal: killed: it may have run out of memory: " +
		"look for \"out of memory\" in the kernel's log: journalctl -k"
	all := fmt.Sprint(said)
	if !said[killed] || strings.Contains(all, "works") || !strings.Contains(all, "hangs: it did not") {
		t.Errorf("recorded: %v", all)
	}
	printed.mu.Lock()
	defer printed.mu.Unlock()
	if n := strings.Count(printed.text.String(), "part works began"); n != 1 {
		t.Errorf("the other part began %d times", n)
	}
	cancel()
	if parts.turning(asking) {
		t.Error("loops that have ended turn")
	}
}
