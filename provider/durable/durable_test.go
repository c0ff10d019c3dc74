package durable

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// holds fails unless a directory has one file, with this name, text and mode.
func holds(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("the file has %q, %v, want %q", got, err, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != mode {
		t.Errorf("the file has mode %v, %v, want %v", info.Mode(), err, mode)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("beside the file there is something: %v, %v", all, err)
	}
}

func TestReplaceKeepsTheOldOrHasTheNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := Replace(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "one", 0o644)
	if err := Replace(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "two", 0o600)
	refused := errors.New("refused")
	err := Replace(path, []byte("three"), 0o644, func(f *os.File) error {
		info, err := f.Stat()
		if err != nil || info.Size() != 0 || info.Mode() != 0o600 {
			t.Errorf("before it is filled it has %d bytes and mode %v, %v", info.Size(), info.Mode(), err)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("error %v, want what prepare said", err)
	}
	holds(t, path, "two", 0o600)
	if err := Replace(filepath.Join(path, "below"), nil, 0o600); err == nil {
		t.Error("a file was made below a file")
	}
}

func TestWritersAtTheSameTimeDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	texts := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<12)}
	done := make(chan error, 20)
	for i := range cap(done) {
		go func() { done <- Replace(path, texts[i%2], 0o600) }()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, texts[0]) && !bytes.Equal(got, texts[1]) {
			t.Fatalf("%d bytes that were never written, %v", len(got), err)
		}
	}
}
