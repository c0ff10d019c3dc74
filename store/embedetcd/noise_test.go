package embedetcd

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// A peer that is down is warned of once a minute, with how often etcd said so; another peer, and
// what etcd calls an error, are not held back by it.
func TestWarningsOfEtcdAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	core := newZapLogger(slog.New(slog.NewTextHandler(&out, nil)), false, new(lastError), new(warnings)).Core()
	at := time.Now()
	say := func(level zapcore.Level, message, peer string) {
		e := zapcore.Entry{Level: level, Time: at, Message: message}
		if checked := core.Check(e, nil); checked != nil {
			checked.Write(zap.String("remote-peer-id", peer))
		}
	}
	for range 600 { // a minute and a half
		say(zapcore.WarnLevel, "prober detected unhealthy status", "b")
		at = at.Add(150 * time.Millisecond)
	}
	say(zapcore.WarnLevel, "prober detected unhealthy status", "c")
	for range 2 {
		say(zapcore.ErrorLevel, "failed to write", "b")
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "repeated=399") ||
		!strings.Contains(lines[2], "remote-peer-id=c") {
		t.Errorf("%d lines:\n%s", len(lines), out.String())
	}
}

// What etcd cancels because its member is being closed is no warning; other failures are, and so is
// what is canceled before.
func TestCanceledByTheEndIsNoWarning(t *testing.T) {
	entry := zapcore.Entry{Level: zapcore.WarnLevel, Time: time.Now(), Message: "failed to update cluster version"}
	for _, c := range []struct {
		ending bool
		err    error
		want   bool
	}{
		{false, context.Canceled, true},
		{true, context.Canceled, false},
		{true, context.DeadlineExceeded, true},
	} {
		w := new(warnings)
		w.ending.Store(c.ending)
		if _, ok := w.pass(entry, map[string]any{"error": c.err.Error()}); ok != c.want {
			t.Errorf("ending %t, %q: passed on %t, want %t", c.ending, c.err, ok, c.want)
		}
	}
}

// A start and a stop in order log no warning and no error.
func TestAMemberStartsAndStopsQuietly(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s, err := Start(ctx, Config{
		DataDir: filepath.Join(t.TempDir(), "etcd"), Listen: "127.0.0.1:0", NoSync: true,
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, s).Get(ctx, "key"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		// The machine is slow: the member's first election is not over when it looks for its version.
		slow := strings.Contains(line, "took too long") || strings.Contains(line, "missing term information")
		if !slow {
			t.Errorf("it logs %s", line)
		}
	}
}
