package backup_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/store"
)

// A scheduled backup that fails is noted, and made again within a minute, or after an interval that
// is shorter. Then the failure is no longer noted. A replica that stops notes none.
//
// proves DAY-2
func TestABackupThatFailsIsMadeAgainWithinAMinute(t *testing.T) {
	for every, wait := range map[time.Duration]time.Duration{
		time.Hour: time.Minute, time.Minute: time.Minute, 10 * time.Second: 10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			s, keys := filled(t)
			inTheWay := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			cfg := backup.Config{Shard: "default", By: "a", Every: every, Dir: filepath.Join(inTheWay, "backups"), Keep: 5}
			ctx, end := context.WithCancel(t.Context())
			schedule := backup.NewSchedule(cfg, s, slog.New(slog.DiscardHandler))
			go schedule.Run(ctx)
			synctest.Wait()
			noted := decode[store.Backup](t, s, keys.Backup()).Record
			if f := noted.Failure; f == nil || !f.At.Equal(time.Now()) || f.By != "a" || f.Full || !noted.At.IsZero() {
				t.Errorf("noted of a backup that failed: %+v", noted)
			}
			if err := os.Remove(inTheWay); err != nil {
				t.Fatal(err)
			}
			<-time.After(wait - 1)
			synctest.Wait()
			if _, err := os.Stat(inTheWay); err == nil {
				t.Errorf("every %s: it is made again in less than %s", every, wait)
			}
			<-time.After(1)
			synctest.Wait()
			noted = decode[store.Backup](t, s, keys.Backup()).Record
			if noted.Failure != nil || !noted.At.Equal(time.Now()) || len(names(t, cfg.Dir)) != 1 {
				t.Errorf("every %s: after %s is noted %+v", every, wait, noted)
			}
			end()
			if err := schedule.Once(ctx); err == nil || decode[store.Backup](t, s, keys.Backup()).Record.Failure != nil {
				t.Errorf("a backup that the end of its replica cut short: %v", err)
			}
			synctest.Wait()
		})
	}
}

// Files of another shard in the same directory do not make the first backup wait.
//
// proves DAY-2
func TestFilesOfAnotherShardDelayNoBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := filled(t)
		cfg := backup.Config{Shard: "default", By: "a", Every: time.Hour, Dir: t.TempDir(), Keep: 1}
		other := fmt.Sprintf("default-too-5eed-%s-rev9.leasehold-backup", time.Now().UTC().Format("20060102T150405.000Z"))
		if err := os.WriteFile(filepath.Join(cfg.Dir, other), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		go backup.NewSchedule(cfg, s, slog.New(slog.DiscardHandler)).Run(ctx)
		synctest.Wait()
		end()
		synctest.Wait()
		if made := names(t, cfg.Dir); len(made) != 2 {
			t.Errorf("beside a file of another shard: %v", made)
		}
	})
}

// The command knows what it is given, and nothing else of the coordinator's environment.
//
// proves DAY-2, SEC-7
func TestWhatABackupCommandKnows(t *testing.T) {
	t.Setenv("LEASEHOLD_ETCD_PASSWORD", "secret")
	s, keys := filled(t)
	out := filepath.Join(t.TempDir(), "env")
	cfg := backup.Config{
		Shard: "default", By: "a", Every: time.Hour, Dir: t.TempDir(), Keep: 1,
		Command: []string{"sh", "-c", `cat >/dev/null; env >"$0"`, out},
	}
	if err := once(t, s, cfg); err != nil {
		t.Fatal(err)
	}
	noted := decode[store.Backup](t, s, keys.Backup()).Record
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"LEASEHOLD_BACKUP_SHARD=default", fmt.Sprintf("LEASEHOLD_BACKUP_REVISION=%d", noted.Revision),
		"LEASEHOLD_BACKUP_NAME=" + names(t, cfg.Dir)[0], "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"),
	} {
		if !strings.Contains("\n"+string(text), "\n"+line+"\n") {
			t.Errorf("the command does not know %s:\n%s", line, text)
		}
	}
	if strings.Contains(string(text), "PASSWORD") {
		t.Errorf("the command knows the coordinator's password:\n%s", text)
	}
}
