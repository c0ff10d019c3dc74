package embedetcd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/zap"
)

// A full disk is named as such, and never as data that cannot be read: that advice loses data.
func TestAFullDiskIsNotTakenForBrokenData(t *testing.T) {
	last := new(lastError)
	log := newZapLogger(slog.New(slog.DiscardHandler), false, last, new(warnings))
	gaveUp := func(why error) (err error) {
		defer func() {
			err = &brokenDataError{said: fmt.Sprint(recover()), why: last.get()}
		}()
		log.Panic("failed to create WAL", zap.Error(why))
		return nil
	}
	dir := t.TempDir()
	for what, err := range map[string]error{
		"while etcd makes its log": explainStart(dir, "127.0.0.1:0", gaveUp(syscall.ENOSPC)),
		"etcd's own words":         explainStart(dir, "127.0.0.1:0", gaveUp(errors.New("write: no space left on device"))),
		"the quota of a user":      explainStart(dir, "127.0.0.1:0", gaveUp(&fs.PathError{Op: "write", Err: syscall.EDQUOT})),
		"in the directory":         explainDir(dir, &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}),
	} {
		if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), dir+" is full") {
			t.Errorf("%s: %v", what, err)
		}
		for _, no := range []string{"cannot read", "another directory", "away"} {
			if strings.Contains(err.Error(), no) {
				t.Errorf("%s: %q says %q", what, err, no)
			}
		}
	}
	if err := explainStart(dir, "127.0.0.1:0", gaveUp(errors.New("crc mismatch"))); errors.Is(err, ErrNoSpace) ||
		!strings.Contains(err.Error(), "cannot read the data") || !strings.Contains(err.Error(), "crc mismatch") {
		t.Errorf("broken data: %v", err)
	}
}
