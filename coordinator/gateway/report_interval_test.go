package gateway

import (
	"fmt"
	"testing"
	"time"
)

// Where many agents are served, what says nothing new is written less often: as many times a second
// as with fewer.
//
// proves DET-16
func TestOldNewsOfManyAgentsIsWrittenLessOften(t *testing.T) {
	for agents, every := range map[int]time.Duration{
		0: time.Minute, 24_000: time.Minute, 48_000: 2 * time.Minute,
		100_000: 250 * time.Second,
	} {
		g := &Gateway{sessions: make(map[string]*session, agents)}
		for i := range agents {
			g.sessions[fmt.Sprint(i)] = nil
		}
		if got := g.oldNewsEvery(); got != every {
			t.Errorf("%d agents: every %s, want %s", agents, got, every)
		}
	}
}
