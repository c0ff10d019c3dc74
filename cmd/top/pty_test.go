package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"golang.org/x/sys/unix"
)

// pseudo opens a pseudoterminal.
func pseudo(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err != nil {
		t.Fatal(err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return master, terminal
}

// printed is what a program writes to its terminal.
type printed struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *printed) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *printed) has(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Contains(o.b.String(), text)
}

// proves WEB-1: however the program ends, the terminal is as it was
func TestTerminalIsRestored(t *testing.T) {
	for name, leave := range map[string]func(master *os.File, cancel context.CancelFunc){
		"q":        func(master *os.File, _ context.CancelFunc) { _, _ = master.WriteString("q") },
		"Ctrl-C":   func(master *os.File, _ context.CancelFunc) { _, _ = master.WriteString("\x03") },
		"a signal": func(_ *os.File, cancel context.CancelFunc) { cancel() },
	} {
		x := newTerminal(t, 80, 24)
		x.group("web", 3)
		master, terminal := pseudo(t)
		before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		var out printed
		var reading sync.WaitGroup
		reading.Go(func() {
			buf := make([]byte, 4096)
			for {
				n, err := master.Read(buf)
				_, _ = out.Write(buf[:n])
				if err != nil {
					return
				}
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{Shard: "test", Now: time.Now, Colour: true, In: terminal, Out: terminal}, store.Store(x.st))
		}()
		end := time.After(2 * time.Minute)
		for !out.has("3/3") {
			select {
			case err := <-done:
				t.Fatalf("%s: it ended: %v", name, err)
			case <-end:
				t.Fatalf("%s: no group on the terminal: %q", name, out.b.String())
			case <-time.After(10 * time.Millisecond):
			}
		}
		leave(master, cancel)
		select {
		case err = <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s: it does not end", name)
		}
		if name == "a signal" != errors.Is(err, context.Canceled) || name != "a signal" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("%s: the terminal was %+v and is %+v, %v", name, before, after, err)
		}
		cancel()
		_ = terminal.Close()
		reading.Wait() // of what was written last, too
		_ = master.Close()
		if !out.has("\x1b[?1049l") {
			t.Errorf("%s: the other screen was not left", name)
		}
	}
}
