package backup_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/store"
)

// A backup onto a full disk fails and says so, in the record that status reads as well. The earlier
// one stays whole, no part of the new one is left, and the next one succeeds once there is space.
//
// proves DAY-2
func TestABackupOntoAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	s, keys := filled(t)
	cfg := backup.Config{
		Shard: "default", By: "coord-a", Every: time.Hour, Dir: filepath.Join(disk, "backups"), Keep: 1,
	}
	record := func() store.Backup {
		t.Helper()
		kv, err := s.Get(t.Context(), keys.Backup())
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := store.Decode[store.Backup](kv)
		if err != nil {
			t.Fatal(err)
		}
		return decoded.Record
	}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	good, before := names(t, cfg.Dir), record()
	rest := filepath.Join(disk, "rest")
	if err := os.WriteFile(rest, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("it is not full: %v", err)
	}
	for range 2 {
		err := once(t, s, cfg)
		if err == nil || !strings.HasSuffix(err.Error(), ": no space left on device") ||
			strings.Count(err.Error(), cfg.Dir) != 1 {
			t.Fatalf("onto a full disk: %v", err)
		}
		if now := names(t, cfg.Dir); !slices.Equal(now, good) {
			t.Errorf("there is %q, and was %q", now, good)
		}
		if r := record(); r.Failure == nil || !r.Failure.Full || r.Failure.Why != err.Error() ||
			!r.At.Equal(before.At) || r.To != before.To {
			t.Errorf("recorded %+v, %+v", r, r.Failure)
		}
	}
	file, err := os.Open(filepath.Join(cfg.Dir, good[0]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(file); err != nil {
		t.Errorf("the earlier backup: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(rest); err != nil {
		t.Fatal(err)
	}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	if now := names(t, cfg.Dir); len(now) != 1 || slices.Equal(now, good) || record().Failure != nil {
		t.Errorf("with space there is %q, recorded %+v", now, record())
	}
}
