package notice

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A source is asked every two seconds, the first time at once, unless told otherwise.
//
// proves SPOT-1
func TestHowOftenASourceIsAsked(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{0: 2 * time.Second, 5 * time.Second: 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, err := New(Config{Every: every}, Deps{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "notice")
			w.Watch(Spec{Source: File, File: path})
			ctx, end := context.WithCancel(t.Context())
			go w.Run(ctx)
			for round := range 3 {
				synctest.Wait()
				if w.Latest() != nil {
					t.Fatalf("round %d: there is a notice without a file", round)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				<-time.After(want - 1)
				synctest.Wait()
				if w.Latest() != nil {
					t.Errorf("round %d: it is asked again in less than %s", round, want)
				}
				<-time.After(1)
				synctest.Wait()
				if n := w.Latest(); n == nil || !n.Seen.Equal(time.Now()) {
					t.Errorf("round %d: it is not asked every %s: %+v", round, want, n)
				}
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				<-time.After(want)
			}
			end()
			synctest.Wait()
		})
	}
}
