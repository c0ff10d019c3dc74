package supervised

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// systemd hears that the service is ready, and of its main loop for as long as that answers.
//
// proves DAY-4
func TestSystemdIsNotified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer systemd.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "40000")
	t.Setenv("WATCHDOG_PID", "")
	s := open()
	if os.Getenv("NOTIFY_SOCKET") != "" || os.Getenv("WATCHDOG_USEC") != "" {
		t.Error("children would inherit the socket")
	}
	hear := func() string {
		t.Helper()
		if err := systemd.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 100)
		n, err := systemd.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	s.Ready()
	if said := hear(); said != "READY=1" {
		t.Errorf("said %q", said)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan bool)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, func(context.Context) bool { return <-asked })
	}()
	asked <- true
	if said := hear(); said != "WATCHDOG=1" {
		t.Errorf("said %q", said)
	}
	asked <- false // the loop hangs: nothing is said before it answers again
	asked <- true
	if said := hear(); said != "WATCHDOG=1" {
		t.Errorf("said %q", said)
	}
	cancel()
	close(asked)
	<-ended
	Service{}.Ready() // without systemd nothing happens
}

// A service that waits while it starts asks for time; a part of one gives signs of life alone.
//
// proves DAY-4
func TestStartsAndParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []string
		s := Service{tell: func(state string) { said = append(said, state) }}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
		defer cancel()
		hangs := false
		time.AfterFunc(30*time.Second, func() { hangs = true })
		s.Start(ctx, func(context.Context) bool { return !hangs })
		if want := slices.Repeat([]string{"EXTEND_TIMEOUT_USEC=80000000"}, 2); !slices.Equal(said, want) {
			t.Errorf("said %q", said)
		}
		alive := 0
		part := Part(time.Minute, func() { alive++ })
		part.Ready()
		part.Status("none hears it")
		living, end := context.WithTimeout(t.Context(), 40*time.Second)
		defer end()
		part.Watch(living, func(context.Context) bool { return true })
		if alive != 3 {
			t.Errorf("%d signs of life", alive)
		}
	})
}
