package keyfile

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/coordinator/encryption"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newRing() encryption.Ring { return encryption.Ring{}.With(encryption.NewKey()) }

// proves SEC-6
func TestAFileThatOthersMayReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.key")
	ring := newRing()
	if err := Create(path, ring); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || !got.Equal(ring) {
		t.Fatalf("read %v, %v", got, err)
	}
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := Create(path, newRing()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made again: %v", err)
	}
	if _, err := Read(filepath.Dir(path)); err == nil {
		t.Error("a directory was read")
	}
}

func TestReplaceKeepsWhatItDoesNotKnow(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real.key"), filepath.Join(dir, "secrets.key")
	was, now := newRing(), newRing()
	if err := Create(path, was); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	// What an interrupted run left is no hindrance.
	if err := os.WriteFile(filepath.Join(dir, ".real.key.new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	unlock, err := Lock(link)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(link); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("locked twice: %v", err)
	}
	if err := Replace(link, now, was); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("replaced on another's word: %v", err)
	}
	if err := Replace(link, was, now); err != nil {
		t.Fatal(err)
	}
	unlock()
	if got, err := Read(path); err != nil || !got.Equal(now) {
		t.Errorf("the file behind the link has %v, %v", got, err)
	}
	if again, err := Lock(link); err != nil {
		t.Errorf("locked after it was unlocked: %v", err)
	} else {
		again()
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
}

func TestKeysFollowTheirFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.key")
	if _, err := Open(Config{Path: path}, quiet()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was named and is not there: %v", err)
	}
	k, err := Open(Config{Path: path, Optional: true}, quiet())
	if err != nil || len(k.Ring().IDs()) != 0 {
		t.Fatalf("%v, %v", k, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed, done := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(done)
		k.Follow(ctx, func() { changed <- struct{}{} })
	}()
	ring := newRing()
	if err := Create(path, ring); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-time.After(2 * time.Minute):
		t.Fatal("the file was not read")
	}
	cancel()
	<-done
	if !k.Ring().Equal(ring) {
		t.Fatalf("keys are %v, want %v", k.Ring(), ring)
	}

	// What cannot be used changes nothing.
	for _, spoil := range []func() error{
		func() error { return os.Chmod(path, 0o644) },
		func() error { return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("k1:AA"), 0o600)) },
		func() error { return os.WriteFile(path, nil, 0o600) },
		func() error { return os.Remove(path) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if k.Look() || !k.Ring().Equal(ring) {
			t.Errorf("keys are %v, want %v as before", k.Ring(), ring)
		}
	}
	next := newRing()
	if err := Create(path, next); err != nil {
		t.Fatal(err)
	}
	if !k.Look() || !k.Ring().Equal(next) || k.Look() {
		t.Errorf("keys are %v, want %v", k.Ring(), next)
	}
}

func TestKeysOfTheEnvironment(t *testing.T) {
	ring := newRing()
	k, err := Open(Config{Path: "/nowhere", Text: ring.Text()}, quiet())
	if err != nil || !k.Ring().Equal(ring) {
		t.Errorf("keys are %v, %v", k, err)
	}
	if _, err := Open(Config{Text: "k1"}, quiet()); err == nil || !strings.Contains(err.Error(), "environment") {
		t.Errorf("keys that are none: %v", err)
	}
	k.Follow(t.Context(), func() { t.Error("changed") }) // returns at once
}
