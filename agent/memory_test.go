package agent

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A disk that takes almost a second for each write does not delay reports for longer than a short
// lease lasts. Once it is fast, the loop waits for it again.
//
// proves DET-2, SAFE-5
func TestASlowDiskTakesNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes, saved := 9*diskWait/10, 0
		s := newStateWriter(func(stateFile) error {
			<-time.After(takes)
			saved++
			return nil
		}, slog.New(slog.DiscardHandler))
		go s.run()
		began := time.Now()
		for range 10 {
			s.write(stateFile{})
		}
		if took := time.Since(began); took > diskWait {
			t.Errorf("the loop waited %s", took)
		}
		pass(time.Hour)
		takes, saved = diskWait/10, 0
		for i := range 5 {
			if s.write(stateFile{}); saved != i+1 {
				t.Errorf("write %d: %d are written", i+1, saved)
			}
		}
		s.close()
	})
}
