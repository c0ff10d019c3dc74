package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func always(string) error { return nil }

// proves FILE-1
func TestFilesAreConfined(t *testing.T) {
	dir := t.TempDir()
	root, outside := filepath.Join(dir, "root"), filepath.Join(dir, "outside")
	must(t, os.MkdirAll(filepath.Join(root, "below"), 0o700))
	must(t, os.MkdirAll(outside, 0o700))
	must(t, os.Symlink(outside, filepath.Join(root, "link")))
	must(t, os.Symlink("../outside", filepath.Join(root, "relative")))
	must(t, os.Symlink("below", filepath.Join(root, "inside")))
	for path, ok := range map[string]bool{
		root + "/a":            true,
		root + "/below/a":      true,
		root + "/inside/a":     true,
		root + "/link/a":       false,
		root + "/relative/a":   false,
		root:                   false,
		dir + "/rootless":      false,
		outside + "/a":         false,
		root + "/../outside/a": false,
		"root/a":               false,
		"/etc/passwd":          false,
	} {
		where, err := find(path, []string{root})
		if err == nil {
			err = replace(where, []byte("x"), attributes{0o600, -1, -1}, always)
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside is %v, %v", left, err)
	}
	// A link in place of the file is replaced, and what it leads to is left alone.
	target := filepath.Join(outside, "target")
	must(t, os.WriteFile(target, []byte("theirs"), 0o600))
	must(t, os.Symlink(target, filepath.Join(root, "linked")))
	where, err := find(root+"/linked", []string{root})
	must(t, err)
	if _, err := look(where, found{}); err == nil {
		t.Error("a link is taken for a file")
	}
	must(t, replace(where, []byte("ours"), attributes{0o600, -1, -1}, always))
	if data, _ := os.ReadFile(target); string(data) != "theirs" {
		t.Errorf("what the link leads to is %q", data)
	}
}

// Something else that takes the place of a file between the agent's look and its reading neither
// blocks the agent nor is read.
//
// proves FILE-1
func TestWhatTakesTheFilesPlaceBlocksNothing(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	must(t, os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	for _, name := range []string{"pipe", "directory", "zero"} {
		if f, err := openFile(root, name); err == nil {
			t.Errorf("%s is read", name)
			f.Close()
		}
	}
	f, err := openFile(root, "file")
	must(t, err)
	f.Close()
}

// Whenever an agent dies while it replaces a file, the file is the old one or the new one, as a
// whole, and the next agent replaces it.
//
// proves FILE-3
func TestACrashLeavesTheOldFileOrTheNewOne(t *testing.T) {
	steps := []string{}
	root := t.TempDir()
	where := place{root, "a"}
	attrs := attributes{0o640, -1, -1}
	must(t, replace(where, []byte("old"), attrs, func(step string) error { steps = append(steps, step); return nil }))
	if want := "remove what a crash left, create, write, chown, chmod, sync, rename, sync directory"; strings.Join(steps,
		", ") != want {
		t.Fatalf("steps are %v", steps)
	}
	died := errors.New("died")
	for _, at := range steps {
		must(t, replace(where, []byte("old"), attrs, always))
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, died) {
					t.Errorf("%s was not reached", at)
				}
			}()
			_ = replace(where, []byte("new content"), attributes{0o600, -1, -1}, func(step string) error {
				if step == at {
					panic(died)
				}
				return nil
			})
		}()
		want, mode := "old", fs.FileMode(0o640)
		if at == "sync directory" {
			want, mode = "new content", 0o600
		}
		data, err := os.ReadFile(filepath.Join(root, "a"))
		info, statErr := os.Stat(filepath.Join(root, "a"))
		if err != nil || statErr != nil || string(data) != want || info.Mode().Perm() != mode {
			t.Errorf("after a crash before %s: %q, %v, %v", at, data, info.Mode(), err)
		}
		must(t, replace(where, []byte("next"), attrs, always))
		if left, _ := os.ReadDir(root); len(left) != 1 {
			t.Errorf("after a crash before %s there are %v", at, left)
		}
	}
	// An error leaves the old file and nothing else.
	for _, at := range steps[:7] {
		must(t, replace(where, []byte("old"), attrs, always))
		err := replace(where, []byte("new"), attrs, func(step string) error {
			if step == at {
				return died
			}
			return nil
		})
		data, _ := os.ReadFile(filepath.Join(root, "a"))
		left, _ := os.ReadDir(root)
		if !errors.Is(err, died) || string(data) != "old" || len(left) != 1 {
			t.Errorf("an error of %s: %v, %q, %v", at, err, data, left)
		}
	}
}

func TestWhatADiskSaysIsSaidPlainly(t *testing.T) {
	root := t.TempDir()
	err := replace(place{root, "none/a"}, nil, attributes{0o600, -1, -1}, always)
	if got := plain(err, root+"/none/a"); got != "the directory "+root+"/none does not exist: create it on the machine" {
		t.Error(got)
	}
	must(t, os.Mkdir(filepath.Join(root, "dir"), 0o700))
	if err := replace(place{root, "dir"}, nil, attributes{0o600, -1, -1}, always); err == nil {
		t.Error("a directory was replaced")
	}
	if _, _, err := ownerOf("no-such-user-here"); err == nil || !strings.Contains(err.Error(), "there is no user") {
		t.Error(err)
	}
	if uid, gid, err := ownerOf("12:34"); uid != 12 || gid != 34 || err != nil {
		t.Error(uid, gid, err)
	}
}
