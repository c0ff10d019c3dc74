package certificate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/identity/identitytest"
	"github.com/leasehold/leasehold/provider/durable"
)

// disk hangs, or is full, when a test says so.
type disk struct {
	mu    sync.Mutex
	hangs chan struct{}
	err   error
}

func (d *disk) write(path string, data []byte) error {
	d.mu.Lock()
	hangs, err := d.hangs, d.err
	d.mu.Unlock()
	if hangs != nil {
		<-hangs
	}
	if err != nil {
		return err
	}
	return durable.Replace(path, data, 0o600)
}

func (d *disk) hang() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hangs = make(chan struct{})
}

func (d *disk) answer() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.hangs)
	d.hangs = nil
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// proves SEC-3
func TestAFullDiskStopsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		disk := &disk{err: syscall.ENOSPC}
		h := hold(t, ca, dir, func(_ *Config, d *Deps) { d.Write = disk.write })
		began := time.Now()
		h.join(month)
		if time.Since(began) != 0 {
			t.Errorf("waited %v for a disk that has said that it is full", time.Since(began))
		}
		passed(time.Minute)
		if h.log.count("no space left") != 1 {
			t.Errorf("log is %s, want the full disk told once", h.log.all())
		}
		if _, err := os.Stat(filepath.Join(dir, fileName)); err == nil {
			t.Fatal("the disk was not full")
		}
		disk.fail(nil)
		passed(diskRetry)
		if h.log.count("written again") != 1 {
			t.Errorf("log is %s, want it told that the disk is well", h.log.all())
		}
		before := h.Status()
		h.stop()
		again := hold(t, ca, dir, nil)
		defer again.stop()
		if again.Status() != before {
			t.Errorf("after a restart it is %+v, was %+v", again.Status(), before)
		}
	})
}

// proves SEC-3
func TestADiskThatHangsIsNotWaitedForTwice(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		disk := &disk{}
		h := hold(t, ca, dir, func(_ *Config, d *Deps) { d.Write = disk.write })
		h.join(month)
		disk.hang()
		for i := range 3 {
			passed(month / 2)
			request, _ := h.Renewal(time.Now())
			before := h.Status()
			h.Accept(h.answer(request, month))
			synctest.Wait()
			if i == 0 {
				if h.Status() != before {
					t.Error("used before it was written, although the disk had its second")
				}
				passed(diskWait)
			}
			if h.Status() == before {
				t.Errorf("renewal %d waits for the disk", i)
			}
		}
		if h.log.count("the disk is slow") != 1 {
			t.Errorf("log is %s", h.log.all())
		}
		disk.answer()
		synctest.Wait()
		before := h.Status()
		h.stop()
		again := hold(t, ca, dir, nil)
		defer again.stop()
		if again.Status() != before {
			t.Errorf("what came while the disk hung was not written: %+v, was %+v", again.Status(), before)
		}
	})
}

// An agent that ends leaves a disk that hangs alone.
func TestTheEndDoesNotWaitForADiskThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		disk := &disk{}
		h := hold(t, ca, dir, func(_ *Config, d *Deps) { d.Write = disk.write })
		disk.hang()
		h.join(month)
		began := time.Now()
		h.stop()
		if time.Since(began) > diskWait {
			t.Errorf("the end took %v", time.Since(began))
		}
		disk.answer()
		synctest.Wait()
	})
}

// proves SEC-1
func TestAFileThatIsOfNoUseIsPutAside(t *testing.T) {
	whole := func(t *testing.T, ca *identitytest.Authority, dir string, change func(*Config, *Deps)) {
		h := hold(t, ca, dir, change)
		h.join(month)
		h.stop()
	}
	for name, spoil := range map[string]func(t *testing.T, ca *identitytest.Authority, dir, path string) string{
		"cut off": func(t *testing.T, ca *identitytest.Authority, dir, path string) string {
			whole(t, ca, dir, nil)
			edit(t, path, func(s string) string { return s[:len(s)/2] })
			return "cannot be read"
		},
		"empty": func(t *testing.T, _ *identitytest.Authority, _, path string) string {
			edit(t, path, func(string) string { return "" })
			return "cannot be read"
		},
		"another instance's": func(t *testing.T, ca *identitytest.Authority, dir, path string) string {
			whole(t, ca, dir, nil)
			edit(t, path, func(s string) string { return strings.Replace(s, us.Name, "web-7-x", 1) })
			return "web-7-x"
		},
		"another shard's": func(t *testing.T, ca *identitytest.Authority, dir, path string) string {
			whole(t, ca, dir, nil)
			edit(t, path, func(s string) string { return strings.Replace(s, `"s1"`, `"s9"`, 1) })
			return "shard s9"
		},
		"newer": func(t *testing.T, ca *identitytest.Authority, dir, path string) string {
			whole(t, ca, dir, nil)
			edit(t, path, func(s string) string { return strings.Replace(s, `"schema": 1`, `"schema": 2`, 1) })
			return "schema 2"
		},
		"halves that do not fit": func(t *testing.T, ca *identitytest.Authority, dir, path string) string {
			whole(t, ca, dir, nil)
			edit(t, path, func(s string) string {
				key, err := keyText(newKey(t))
				if err != nil {
					t.Fatal(err)
				}
				from := strings.Index(s, "-----BEGIN PRIVATE KEY")
				to := strings.Index(s, `",`+"\n"+`  "certificate"`)
				return s[:from] + strings.ReplaceAll(key, "\n", `\n`) + s[to:]
			})
			return "does not belong to its key"
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
				path := filepath.Join(dir, fileName)
				why := spoil(t, ca, dir, path)
				spoiled, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				h := hold(t, ca, dir, nil)
				defer h.stop()
				if h.Status().Joined || h.log.count(why) != 1 {
					t.Fatalf("status is %+v, log %s, want %q", h.Status(), h.log.all(), why)
				}
				aside, err := os.ReadFile(path + ".aside")
				if err != nil || string(aside) != string(spoiled) {
					t.Errorf("put aside: %v", err)
				}
				if strings.Contains(h.log.all(), "PRIVATE") {
					t.Errorf("a key is in the log: %s", h.log.all())
				}
				h.join(month)
			})
		})
	}
}

// A file that cannot be read stays in place: a machine that has joined could not join again.
//
// proves SEC-2
func TestAFileThatCannotBeReadStays(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		h.join(month)
		h.stop()
		path, kept := filepath.Join(dir, fileName), filepath.Join(dir, "kept")
		if err := errors.Join(os.Rename(path, kept), os.Mkdir(path, 0o700)); err != nil { // reading it fails
			t.Fatal(err)
		}
		if _, err := Open(h.cfg, h.deps); !errors.Is(err, syscall.EISDIR) {
			t.Errorf("opened: %v", err)
		}
		if err := errors.Join(os.Remove(path), os.Rename(kept, path)); err != nil {
			t.Fatal(err)
		}
		h = hold(t, ca, dir, nil)
		defer h.stop()
		if !h.Status().Joined {
			t.Errorf("status is %+v", h.Status())
		}
	})
}

func TestAKeyThatOthersCanReadIsClosedToThem(t *testing.T) {
	bubble(t, func(t *testing.T, ca *identitytest.Authority, dir string) {
		h := hold(t, ca, dir, nil)
		h.join(month)
		h.stop()
		path := filepath.Join(dir, fileName)
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		h = hold(t, ca, dir, nil)
		defer h.stop()
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || h.log.count("could be read by others") != 1 {
			t.Errorf("mode %v, %v, log %s", info.Mode(), err, h.log.all())
		}
	})
}

func edit(t *testing.T, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(data))), 0o600); err != nil {
		t.Fatal(err)
	}
}
