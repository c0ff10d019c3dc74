package secrets

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/leasehold/leasehold/tests/leaks"
)

// search searches the files below a directory, except those that may contain a value.
func search(t *testing.T, dir string, values map[string]string, may func(path string) bool) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		if may(path) {
			return nil
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		files++
		lookAt(t, path, data, values)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// lookAt reports each value that a text contains.
func lookAt(t *testing.T, where string, data []byte, values map[string]string) {
	t.Helper()
	for _, what := range found(t, data, values) {
		t.Errorf("%s has %s", where, what)
	}
}

func found(t *testing.T, in []byte, values map[string]string) []string {
	t.Helper()
	s, err := leaks.For(values)
	if err != nil {
		t.Fatal(err)
	}
	return s.In(in)
}
