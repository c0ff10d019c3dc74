package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/store"
)

// names returns the files of a directory, in order.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// once makes one backup of the shard, after a change.
func once(t *testing.T, s store.Store, cfg backup.Config) error {
	t.Helper()
	put(t, s, store.KeysOf(cfg.Shard).Secret("a"), []byte("}"))
	return backup.NewSchedule(cfg, s, slog.New(slog.DiscardHandler)).Once(t.Context())
}

// A command that fails for days leaves one file, which can be restored, and removes none. When it
// works again, that file is the newest of those that are kept.
//
// proves DAY-2
func TestACommandThatFailsLeavesOneFile(t *testing.T) {
	s, _ := filled(t)
	dir, fail := t.TempDir(), filepath.Join(t.TempDir(), "fail")
	cfg := backup.Config{
		Shard: "default", By: "a", Every: time.Hour, Dir: dir, Keep: 2,
		Command: []string{"sh", "-c", `cat >/dev/null; [ ! -e "$0" ]`, fail},
	}
	for range 2 {
		if err := once(t, s, cfg); err != nil {
			t.Fatal(err)
		}
	}
	good := names(t, dir)
	if err := os.WriteFile(fail, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := once(t, s, cfg); err == nil {
			t.Fatal("the command did not fail")
		}
	}
	left := slices.DeleteFunc(names(t, dir), func(name string) bool { return slices.Contains(good, name) })
	if len(left) != 1 || len(names(t, dir)) != 3 {
		t.Fatalf("after five failures: %v, and before %v", names(t, dir), good)
	}
	file, err := os.Open(filepath.Join(dir, left[0]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(file); err != nil {
		t.Errorf("the file that is left: %v", err)
	}
	_ = file.Close()
	if err := os.Remove(fail); err != nil {
		t.Fatal(err)
	}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	if now := names(t, dir); len(now) != 2 || now[0] != good[1] || strings.Contains(now[1], "unsent") {
		t.Errorf("once it works again: %v, and before %v", now, good)
	}
}

// A backup removes what one that was killed left unfinished in the directory.
//
// proves DAY-2
func TestABackupAfterOneThatWasKilled(t *testing.T) {
	s, _ := filled(t)
	dir := t.TempDir()
	cfg := backup.Config{Shard: "default", By: "a", Every: time.Hour, Dir: dir, Keep: 2}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "."+names(t, dir)[0]+".leasehold-new-4711")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left, killed, killed); err != nil {
		t.Fatal(err)
	}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) || len(names(t, dir)) != 2 {
		t.Errorf("after the next backup: %v", names(t, dir))
	}
}

// A replica that is restarted repeatedly makes no more files than one that runs: otherwise files of
// minutes would displace files of days.
//
// proves DAY-2
func TestReplicasThatRestartMakeNoMoreBackups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := filled(t)
		cfg := backup.Config{Shard: "default", By: "a", Every: time.Hour, Dir: t.TempDir(), Keep: 48}
		var end context.CancelFunc
		restart := func() {
			var ctx context.Context
			ctx, end = context.WithCancel(t.Context())
			go backup.NewSchedule(cfg, s, slog.New(slog.DiscardHandler)).Run(ctx)
		}
		for range 3 {
			restart()
			<-time.After(time.Minute)
			synctest.Wait()
			end()
			if made := names(t, cfg.Dir); len(made) != 1 {
				t.Fatalf("starts within an interval made %v", made)
			}
		}
		restart()
		<-time.After(time.Hour)
		synctest.Wait()
		end()
		if made := names(t, cfg.Dir); len(made) != 2 {
			t.Errorf("after an interval: %v", made)
		}
		ahead := filepath.Join(cfg.Dir, fmt.Sprintf("default-5eed-20990101T000000.000Z-rev%d.leasehold-backup", 9))
		if err := os.WriteFile(ahead, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		restart()
		synctest.Wait()
		end()
		if made := names(t, cfg.Dir); len(made) != 4 {
			t.Errorf("beside a file of a clock that was ahead: %v", made)
		}
		synctest.Wait()
	})
}

// The file that was just made stays, whatever the names of others say: files of a clock that was
// ahead are removed first.
//
// proves DAY-2, SAFE-13
func TestBackupsAfterAClockWasAhead(t *testing.T) {
	s, keys := filled(t)
	cfg := backup.Config{Shard: "default", By: "a", Every: time.Hour, Dir: t.TempDir(), Keep: 2}
	ahead := []string{
		"default-5eed-20990101T000000.000Z-rev7.leasehold-backup", "default-5eed-20990101T010000.000Z-rev8.leasehold-backup",
	}
	for _, name := range ahead {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(t, s, keys.Backup(), store.Encode(store.Backup{
		Schema: 1, At: time.Date(2099, 1, 1, 1, 0, 0, 0, time.UTC), Revision: 8, By: "a", To: ahead[1],
	}))
	for made := 1; made < 4; made++ {
		if err := once(t, s, cfg); err != nil {
			t.Fatal(err)
		}
		noted := decode[store.Backup](t, s, keys.Backup()).Record
		now := names(t, cfg.Dir)
		if len(now) != 2 || !slices.Contains(now, filepath.Base(noted.To)) || noted.At.Year() == 2099 {
			t.Fatalf("backup %d: %v, and noted %+v", made, now, noted)
		}
		if made > 1 && slices.Contains(now, ahead[1]) || slices.Contains(now, ahead[0]) {
			t.Errorf("backup %d: %v", made, now)
		}
	}
}

// proves DAY-2: a command's output takes no more memory than the part that is kept
func TestACommandThatWritesWithoutEnd(t *testing.T) {
	s, keys := filled(t)
	cfg := backup.Config{
		Shard: "default", By: "a", Every: time.Hour,
		Command: []string{"sh", "-c", `cat >/dev/null; head -c 64000000 /dev/zero; echo the disk is full; exit 3`},
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := once(t, s, cfg); err == nil {
		t.Error("the command did not fail")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("it took %d bytes", took)
	}
	f := decode[store.Backup](t, s, keys.Backup()).Record.Failure
	if f == nil || !strings.HasSuffix(f.Why, "the disk is full") || len(f.Why) > 700 {
		t.Errorf("noted: %+v", f)
	}
}
