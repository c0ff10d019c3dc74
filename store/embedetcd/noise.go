package embedetcd

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap/zapcore"
)

// noise are warnings of every start that are about how this package sets etcd up, which is on
// purpose: no operator can act on them.
var noise = []string{
	"Running http and grpc server on single port. This is not recommended for production.",
	"simple token is not cryptographically signed",
}

// endNoise is what etcd logs as errors whenever its servers are closed, beside what it then
// cancels.
var endNoise = []string{
	"setting up serving from embedded etcd failed.",
	"stopping insecure grpc server due to error", "stopped insecure grpc server due to error",
	"stopping secure grpc server due to error", "stopped secure grpc server due to error",
}

// repeatAfter is how long a warning of etcd's about the same peer is not repeated: it warns several
// times a second about one that is down.
const repeatAfter = time.Minute

// maxWarnings bounds how many different warnings are remembered.
const maxWarnings = 1000

// warnings decides which of etcd's entries are passed on.
type warnings struct {
	ending atomic.Bool // the member is being closed

	mu     sync.Mutex
	passed map[[2]string]*passed
}

// passed is when a warning was passed on last, and how often it was held back since.
type passed struct {
	at   time.Time
	held int
}

// pass reports whether an entry is passed on, and how many equal ones were held back before it.
func (w *warnings) pass(e zapcore.Entry, fields map[string]any) (held int, ok bool) {
	ends := slices.Contains(endNoise, e.Message) || fields["error"] == context.Canceled.Error()
	switch {
	case slices.Contains(noise, e.Message), w.ending.Load() && ends:
		return 0, false
	case e.Level != zapcore.WarnLevel:
		return 0, true
	}
	key := [2]string{e.Message}
	for _, name := range []string{"remote-peer-id", "peer-id", "remote-member-id"} {
		if id, is := fields[name].(string); is {
			key[1] = id
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.passed[key]
	if before != nil && e.Time.Sub(before.at) < repeatAfter {
		before.held++
		return 0, false
	}
	if before != nil {
		held = before.held
	}
	if w.passed == nil || len(w.passed) >= maxWarnings {
		w.passed = map[[2]string]*passed{}
	}
	w.passed[key] = &passed{at: e.Time}
	return held, true
}
