package upgrade

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/agent/release"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a machine with an installed program of version v1.0.0, and a coordinator that serves.
type bench struct {
	t       *testing.T
	place   *Place
	private string
	server  *httptest.Server
	serves  atomic.Pointer[[]byte]
	asked   atomic.Int32
}

func newBench(t *testing.T) *bench {
	t.Helper()
	private, public, err := release.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := release.ReadKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, private: private}
	dir := t.TempDir()
	self := filepath.Join(dir, "installed")
	if err := os.WriteFile(self, []byte("installed"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.place = &Place{
		Dir: filepath.Join(dir, "program"), Version: "v1.0.0", Keys: keys, Log: slog.New(slog.DiscardHandler), self: self,
	}
	b.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked.Add(1)
		content := b.serves.Load()
		if r.URL.Path != "/agent" || content == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(*content)
	}))
	t.Cleanup(b.server.Close)
	return b
}

// statement signs a program for this platform.
func (b *bench) statement(version, program string, change ...func(*release.Statement)) string {
	b.t.Helper()
	sum := sha256.Sum256([]byte(program))
	st := release.Statement{
		Version: version, Platform: Platform(), Size: int64(len(program)), SHA256: hex.EncodeToString(sum[:]),
	}
	for _, f := range change {
		f(&st)
	}
	signed, err := release.Sign(st, b.private)
	if err != nil {
		b.t.Fatal(err)
	}
	return signed
}

func (b *bench) serve(program string) {
	content := []byte(program)
	b.serves.Store(&content)
}

func (b *bench) offer(token, statement string) Offer {
	return Offer{
		Token: token, Programs: []Program{{Statement: statement, Path: "/agent"}},
		Addresses: []string{b.server.Listener.Addr().String()}, Within: time.Minute,
	}
}

// manager returns a manager that runs until the test ends, or until end is called.
func (b *bench) manager() (m *Manager, end func()) {
	b.t.Helper()
	roots := b.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	m = New(b.place, Deps{
		TLS: func() *tls.Config {
			return &tls.Config{RootCAs: roots, ServerName: "example.com", MinVersion: tls.VersionTLS13}
		},
		Dial: func(ctx context.Context, a string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", a)
		},
		Pause: time.Millisecond,
	})
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	end = func() { cancel(); <-done }
	b.t.Cleanup(end)
	return m, end
}

// await waits for news of a manager until a condition holds.
func (b *bench) await(m *Manager, what string, is func() bool) {
	b.t.Helper()
	for !is() {
		select {
		case <-m.Changed():
		case <-time.After(time.Minute):
			b.t.Fatalf("waited without success for %s; last %+v", what, m.Last())
		}
	}
}

// What is not signed by a known key for this machine, is earlier, or is not what was signed is not
// installed; the report says why. Each offer is taken once.
//
// proves PROV-7
func TestOffersThatAreNotTaken(t *testing.T) {
	const program = "#!/bin/sh\nexit 0\n"
	other := newBench(t)
	for name, test := range map[string]struct {
		statement func(*bench) string
		served    string // other than the program
		downgrade bool
		result    Result
		why       string
	}{
		"another key": {
			statement: func(*bench) string { return other.statement("v1.1.0", program) },
			result:    Refused, why: "not signed by any of this machine",
		},
		"another platform": {
			statement: func(b *bench) string {
				return b.statement("v1.1.0", program, func(s *release.Statement) { s.Platform = "plan9/mips" })
			},
			result: Refused, why: "no program is offered for",
		},
		"earlier": {
			statement: func(b *bench) string { return b.statement("v0.9.0", program) },
			result:    Refused, why: "asks for no downgrade",
		},
		"of no release": {
			statement: func(b *bench) string { return b.statement("dev", program) },
			result:    Refused, why: "not later than v1.0.0",
		},
		"earlier, as the group asks": {
			statement: func(b *bench) string { return b.statement("v0.9.0", program) }, downgrade: true,
			result: Refused, why: "its signed statement allows no downgrade",
		},
		"tampered": {
			statement: func(b *bench) string { return b.statement("v1.1.0", program) },
			served:    strings.Replace(program, "0", "1", 1), result: Failed,
			why: "serves a program other than the signed one",
		},
		"truncated": {
			statement: func(b *bench) string { return b.statement("v1.1.0", program) },
			served:    program[:5], result: Failed, why: "bytes",
		},
		"too long": {
			statement: func(b *bench) string { return b.statement("v1.1.0", program) },
			served:    program + "more", result: Failed, why: "bytes",
		},
		"this one": {
			statement: func(b *bench) string { return b.statement("v1.0.0", program) }, result: Installed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.serve(program)
			if test.served != "" {
				b.serve(test.served)
			}
			m, end := b.manager()
			o := b.offer("one", test.statement(b))
			o.Downgrade = test.downgrade
			m.Want(&o)
			b.await(m, "an outcome", func() bool { return m.Last() != nil })
			if last := m.Last(); last.Result != test.result || !strings.Contains(last.Why, test.why) || last.Token != "one" {
				t.Errorf("got %+v", last)
			}
			if m.Ready() {
				t.Error("it is ready to be tried")
			}
			if left, _ := filepath.Glob(filepath.Join(b.place.Dir, "leasehold-agent-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			end()
			asked := b.asked.Load()
			again, _ := b.manager() // after a restart
			again.Want(nil)
			again.Want(&o)
			again.Want(&o)
			if last := again.Last(); last == nil || *last != *m.Last() || again.Ready() || b.asked.Load() != asked {
				t.Errorf("after a restart: %+v", last)
			}
		})
	}
}

// An earlier version is taken if both the group and the statement allow it. An offer that is
// withdrawn is dropped. An offer that a full disk prevents fails, and leaves nothing behind.
//
// proves PROV-7
func TestOffersThatAreTaken(t *testing.T) {
	b := newBench(t)
	const program = "#!/bin/sh\nexit 0\n"
	b.serve(program)
	m, _ := b.manager()
	o := b.offer("one", b.statement("v0.9.0", program, func(s *release.Statement) { s.Downgrade = true }))
	o.Downgrade = true
	m.Want(&o)
	b.await(m, "the download", m.Ready)
	m.Want(nil)
	if m.Ready() {
		t.Error("an offer that was withdrawn is ready")
	}

	o = b.offer("two", b.statement("v1.1.0", program+"# 1.1\n"))
	b.serve(program + "# 1.1\n")
	if err := os.RemoveAll(b.place.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.place.Dir, nil, 0o600); err != nil { // nothing can be written
		t.Fatal(err)
	}
	m.Want(&o)
	b.await(m, "an outcome", func() bool { return m.Last() != nil })
	if last := m.Last(); last.Result != Failed || m.Ready() {
		t.Errorf("got %+v", last)
	}
}

const (
	acknowledges = "#!/bin/sh\n: >\"$LEASEHOLD_UPGRADE_TRIAL\"\nexit 0\n"
	hangs        = "#!/bin/sh\nexec sleep 1000\n"
)

// A state file that cannot be read for a while, or that a newer agent wrote, costs no upgrade: once
// it can be read, the program runs that it names.
//
// proves PROV-7
func TestAStateThatCannotBeReadNow(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a directory":    func(path string) error { return os.Mkdir(path, 0o700) },
		"a newer schema": func(path string) error { return os.WriteFile(path, []byte(`{"schema": 2, "current": 7}`), 0o600) },
	} {
		b, trial := tried(t, acknowledges)
		next, err := trial.Run(t.Context(), nil, os.Environ(), func() {})
		if err != nil || next == "" {
			t.Fatal(next, err)
		}
		file := b.place.path(stateFile)
		if err := os.Rename(file, file+"~"); err != nil {
			t.Fatal(err)
		}
		if err := spoil(file); err != nil {
			t.Fatal(err)
		}
		if runs := b.place.Start(); runs != "" {
			t.Errorf("%s: %s runs, of a state that is not known", name, runs)
		}
		if err := errors.Join(os.Remove(file), os.Rename(file+"~", file)); err != nil {
			t.Fatal(err)
		}
		if runs := b.place.Start(); runs != next {
			t.Errorf("%s: %q runs after that, want %s", name, runs, next)
		}
	}
}

// A package that is installed by hand wins over what the agent was upgraded to, and so does a
// machine that no longer trusts the key.
//
// proves PROV-7
func TestWhatIsInstalledWins(t *testing.T) {
	for name, change := range map[string]func(*Place){
		"another version": func(p *Place) { p.Version = "v1.0.1" },
		"no key":          func(p *Place) { p.Keys = release.Keys{} },
	} {
		b, trial := tried(t, acknowledges)
		next, err := trial.Run(t.Context(), nil, os.Environ(), func() {})
		if err != nil || next == "" {
			t.Fatal(next, err)
		}
		upgraded := *b.place
		upgraded.Version, upgraded.self = "v1.1.0", next
		if runs := upgraded.Start(); runs != "" {
			t.Errorf("%s: the program that runs is to become %s", name, runs)
		}
		if over := upgraded.over(upgraded.read()); over != "v1.0.0" {
			t.Errorf("%s: it runs over %s", name, over)
		}
		change(b.place)
		if runs := b.place.Start(); runs != "" || b.place.read().Current != nil {
			t.Errorf("%s: runs %s", name, runs)
		}
	}
}

// proves PROV-7
func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		"leasehold-agent":                                "",
		"/usr/bin/leasehold-agent run --boot-id b":       "run --boot-id b",
		"/usr/bin/leasehold agent --boot-id b":           "run --boot-id b",
		"leasehold --log-level debug agent --source ::1": "run --source ::1",
	} {
		if got := fmt.Sprint(strings.Join(Arguments(strings.Fields(line)), " ")); got != want {
			t.Errorf("%s: %s", line, got)
		}
	}
	if got := Arguments(nil); got != nil {
		t.Error(got)
	}
}

// A version that was acknowledged long ago and ends by itself again and again is taken back, and
// that is reported. What ends in order, or seldom, stays.
//
// proves PROV-7
func TestAVersionThatCrashesLater(t *testing.T) {
	for name, test := range map[string]struct {
		between time.Duration
		ends    bool // in order
		resets  bool // the machine ends, not the version
		stays   bool
	}{
		"at once":       {between: time.Second},
		"now and then":  {between: startsWithin/maxStarts + time.Second, stays: true},
		"in order":      {between: time.Second, ends: true, stays: true},
		"machine reset": {between: time.Second, resets: true, stays: true},
		"in the future": {between: -time.Hour, stays: true}, // its clock is set back each time
	} {
		t.Run(name, func(t *testing.T) {
			b, trial := tried(t, acknowledges)
			program, err := trial.Run(t.Context(), nil, os.Environ(), func() {})
			if err != nil || program == "" {
				t.Fatalf("%q, %v", program, err)
			}
			now := time.Now()
			b.place.now, b.place.Boot = func() time.Time { return now }, "boot"
			for n := range maxStarts {
				if got := b.place.Start(); got != program {
					t.Fatalf("start %d runs %q", n, got)
				}
				if test.ends {
					b.place.Ended()
				}
				if test.resets {
					b.place.Boot += "+"
				}
				now = now.Add(test.between)
			}
			if got := b.place.Start(); (got == program) != test.stays || got != program && got != "" {
				t.Errorf("it runs %q", got)
			}
			last := New(b.place, Deps{}).Last()
			if test.stays {
				if last == nil || last.Result != Installed {
					t.Errorf("outcome %+v", last)
				}
				return
			}
			if last == nil || last.Result != Back || last.Version != "v1.1.0" || last.Token != "one" ||
				!strings.Contains(last.Why, "ended by itself 3 times") {
				t.Errorf("outcome %+v", last)
			}
			if got := b.place.Start(); got != "" {
				t.Errorf("the next start runs %q", got)
			}
		})
	}
}
