package agent

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/files"
)

// The first report of a stream has the directories below which the agent writes files.
//
// proves FILE-1
func TestReportsHaveTheDirectoriesOfFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dirs := []string{"/etc/leasehold-files", "/srv"}
		m := newMachine(true)
		var err error
		m.files, err = files.New(files.Config{Roots: dirs, StateDir: t.TempDir()}, files.Deps{
			Logger: slog.New(slog.DiscardHandler), Now: time.Now, Hidden: func() {}, Hide: func(string, []byte) {},
			Reload:  func() error { return nil },
			Command: func(context.Context, []string, map[string]string) error { return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		s := newShard(t, "a")
		r := startAgent(t, s, m, nil)
		defer r.end()
		pass(time.Millisecond)
		report := r.tells("the first report")
		if !slices.Equal(report.GetFilesRoots(), dirs) {
			t.Errorf("reported are %q", report.GetFilesRoots())
		}
	})
}
