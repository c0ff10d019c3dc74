package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/files"
	"github.com/leasehold/leasehold/agent/protocol"
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

// A disk that does not answer makes no instance unhealthy, and does not prove that it has its files
// either: the next report looks again.
//
// proves FILE-1
func TestADiskThatHangsDoesNotProveThatFilesAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, hung := t.TempDir(), make(chan struct{})
		path := filepath.Join(dir, "a")
		state := fmt.Sprintf(`{"schema":1,"instance":"web-0-a","config":"c1","files":{%q:{"delivered":true}}}`, path)
		if err := os.WriteFile(filepath.Join(dir, "files.json"), []byte(state), 0o600); err != nil {
			t.Fatal(err)
		}
		kept, err := files.New(files.Config{Roots: []string{dir}, StateDir: dir, Instance: "web-0-a"}, files.Deps{
			Logger: slog.New(slog.DiscardHandler), Now: time.Now, Hidden: func() {}, Hide: func(string, []byte) {},
			Reload:  func() error { return nil },
			Command: func(context.Context, []string, map[string]string) error { return nil },
			At:      func(string) error { <-hung; return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		kept.Expect(true)
		a := &Agent{deps: Deps{Files: kept}, assignment: assignment{Files: true}}
		if why := a.incomplete(); why != "" {
			t.Errorf("the disk has not answered, and the instance is unhealthy: %s", why)
		}
		kept.Want(&protocol.Files{ConfigHash: "c1", Files: []*protocol.File{{Path: path, Version: "1"}}}, nil)
		if why := a.incomplete(); !strings.Contains(why, path) {
			t.Errorf("a coordinator has described a file that is not there, and incomplete is %q", why)
		}
		close(hung)
	})
}
