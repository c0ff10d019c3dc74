package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// Config says when a replica backs its shard up, and to where.
type Config struct {
	Shard      string
	By         string              // the replica's ID
	Program    string              // the replica's version
	Every      time.Duration       // between two backups
	Dir        string              // where the files go; "": not to a directory
	Keep       int                 // number of the shard's newest files that stay in Dir
	Command    []string            // receives the file on its standard input; empty: none
	As         *syscall.Credential // the user that the command runs as; nil: this program's
	Recipients []age.Recipient
}

// Schedule makes a replica's backups.
type Schedule struct {
	cfg   Config
	store store.Store
	log   *slog.Logger
	now   func() time.Time
}

// NewSchedule returns a schedule that has not begun.
func NewSchedule(cfg Config, s store.Store, log *slog.Logger) *Schedule {
	return &Schedule{cfg: cfg, store: s, log: log, now: time.Now}
}

const (
	// limit is the timeout of one backup.
	limit = 10 * time.Minute
	// again is the pause before a failed backup is repeated.
	again = time.Minute
	// maxWords is how much of a command's output is kept as the reason of its failure.
	maxWords = 500
)

// Run makes backups at intervals, until ctx ends. A backup that fails is logged, recorded and
// repeated within a minute; nothing else of the replica waits for it.
func (s *Schedule) Run(ctx context.Context) {
	wait := s.untilFirst()
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		wait = s.cfg.Every
		if err := s.Once(ctx); err != nil {
			wait = min(wait, again)
		}
	}
}

// untilFirst returns how long the first backup waits: until the newest file in the directory is as
// old as an interval. A replica that is restarted repeatedly must not make more files than one that
// runs, or it would remove all older ones.
func (s *Schedule) untilFirst() (wait time.Duration) {
	if s.cfg.Dir == "" {
		return 0
	}
	entries, _ := os.ReadDir(s.cfg.Dir) // a directory that cannot be read makes the backup fail
	for _, e := range entries {
		shard, at, ok := splitName(e.Name())
		if age := s.now().Sub(at); ok && shard == s.cfg.Shard && age >= 0 { // otherwise a clock was ahead
			wait = max(wait, s.cfg.Every-age)
		}
	}
	return wait
}

// Once makes one backup. It does nothing while etcd holds no such shard.
func (s *Schedule) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := Take(ctx, s.store.List, s.cfg.Shard, s.cfg.Program, s.now())
	if errors.Is(err, ErrNoShard) {
		return err // a replica that waits for its shard says so itself
	}
	to := ""
	if err == nil {
		to, err = s.keep(ctx, c)
	}
	news := store.Backup{At: c.At, Revision: c.Revision, By: s.cfg.By, To: to}
	if err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return err
		}
		s.log.Error("backup failed", "error", err)
		news = store.Backup{Failure: &store.BackupFailure{
			At: s.now().UTC(), By: s.cfg.By, Why: err.Error(), Full: durable.Full(err),
		}}
	} else {
		s.log.Info("backup made", "to", to, "revision", int64(c.Revision), "keys", len(c.Entries))
	}
	noting, end := context.WithTimeout(context.WithoutCancel(ctx), again)
	defer end()
	if noteErr := store.NoteBackup(noting, s.store, store.KeysOf(s.cfg.Shard), news); noteErr != nil {
		s.log.Warn("the backup could not be recorded in etcd: status does not know of it", "error", noteErr)
	}
	return err
}

// keep writes the content to its destinations, and returns where that is.
func (s *Schedule) keep(ctx context.Context, c Content) (string, error) {
	var file bytes.Buffer
	if err := c.Write(&file, s.cfg.Recipients...); err != nil {
		return "", err
	}
	var to []string
	encrypted := len(s.cfg.Recipients) > 0
	path, begun := filepath.Join(s.cfg.Dir, c.FileName(encrypted)), ""
	if s.cfg.Dir != "" {
		begun = path
		if len(s.cfg.Command) > 0 {
			begun = filepath.Join(s.cfg.Dir, c.fileName(unsent, encrypted))
		}
		if err := durable.MakeDir(s.cfg.Dir); err != nil {
			return "", fmt.Errorf("directory of the backups: %w", err)
		}
		if err := durable.RemoveUnfinished(s.cfg.Dir, s.now()); err != nil {
			s.log.Warn("what backups that were killed left behind could not be removed", "error", err)
		}
		if err := durable.Replace(begun, file.Bytes(), 0o600); err != nil {
			return "", fmt.Errorf("write %s: %w", begun, durable.Cause(err))
		}
		to = append(to, path)
	}
	if len(s.cfg.Command) > 0 {
		if err := s.hand(ctx, c, file.Bytes()); err != nil {
			return "", err
		}
		to = append(to, s.cfg.Command[0])
	}
	if begun != "" && begun != path {
		if err := durable.Rename(begun, path); err != nil {
			return "", err
		}
	}
	if s.cfg.Dir != "" && !c.Hold {
		if err := s.drop(c); err != nil {
			s.log.Warn("old backups could not be removed", "error", err)
		}
	}
	return strings.Join(to, ", "), nil
}

// hand passes the file to the command.
func (s *Schedule) hand(ctx context.Context, c Content, file []byte) error {
	cmd := exec.CommandContext(ctx, s.cfg.Command[0], s.cfg.Command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.cfg.As}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = bytes.NewReader(file)
	// The command gets nothing of the coordinator's own environment, which may hold keys and
	// passwords.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LEASEHOLD_BACKUP_NAME=" +
			c.FileName(len(s.cfg.Recipients) > 0),
		"LEASEHOLD_BACKUP_SHARD=" + c.Shard, fmt.Sprintf("LEASEHOLD_BACKUP_REVISION=%d", c.Revision),
	}
	var said lastWords
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("backup command %s: %w: %s", s.cfg.Command[0], err, bytes.TrimSpace(said))
	}
	return nil
}

// lastWords keeps the end of what is written to it.
type lastWords []byte

func (l *lastWords) Write(p []byte) (int, error) {
	*l = append(*l, p[max(0, len(p)-maxWords):]...)
	*l = slices.Delete(*l, 0, max(0, len(*l)-maxWords))
	return len(p), nil
}

const (
	suffix = ".leasehold-backup"
	// stamp is the format of the time in a file's name.
	stamp = "20060102T150405.000Z"
	// unsent replaces time and revision in the file's name until the command has taken the file.
	// There is only one such file: a command that fails for days neither fills the disk nor
	// displaces older files.
	unsent = "unsent"
)

// FileName is the name of a scheduled backup: names of one shard sort by time.
func (c Content) FileName(encrypted bool) string {
	return c.fileName(c.At.UTC().Format(stamp)+fmt.Sprintf("-rev%d", c.Revision), encrypted)
}

func (c Content) fileName(which string, encrypted bool) string {
	name := c.filePrefix() + which + suffix
	if encrypted {
		name += ".age"
	}
	return name
}

// splitName returns the shard and the time of a scheduled backup.
func splitName(name string) (shard string, at time.Time, ok bool) {
	name, ok = strings.CutSuffix(strings.TrimSuffix(name, ".age"), suffix)
	parts := strings.Split(name, "-") // the shard's name may have dashes; then ID, time, revision
	n := len(parts)
	if !ok || n < 4 {
		return "", at, false
	}
	at, err := time.Parse(stamp, parts[n-2])
	return strings.Join(parts[:n-3], "-"), at, err == nil
}

// filePrefix includes the shard's ID: a shard that was created again by mistake displaces no backup
// of the lost one.
func (c Content) filePrefix() string { return c.Shard + "-" + c.ShardID + "-" }

// drop removes the oldest files of the shard beyond those that are kept. The file of this content
// is the newest even if the names of others say that they are younger: a clock that was ahead made
// them, and they are removed first.
func (s *Schedule) drop(c Content) error {
	entries, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return err
	}
	own := c.FileName(len(s.cfg.Recipients) > 0)
	var older, ahead []string
	for _, e := range entries { // sorted by name
		name := e.Name()
		_, at, ok := splitName(name)
		switch {
		case !ok || name == own || !e.Type().IsRegular() || !strings.HasPrefix(name, c.filePrefix()):
		case at.After(c.At):
			ahead = append(ahead, name)
		default:
			older = append(older, name)
		}
	}
	others := append(ahead, older...)
	for _, name := range others[:max(0, len(others)-s.cfg.Keep+1)] {
		err = errors.Join(err, os.Remove(filepath.Join(s.cfg.Dir, name)))
	}
	return err
}
