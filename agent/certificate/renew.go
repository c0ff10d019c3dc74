package certificate

import "time"

const (
	// earlySpread is the longest time over which agents spread their requests when another
	// authority issues.
	earlySpread = 30 * time.Second
	// mostPause and leastPause bound the time between two requests.
	mostPause  = 10 * time.Minute
	leastPause = time.Second
)

// term is all that decides when to ask for the next certificate. Its times of events were read from
// this machine's clock, and count on by the monotonic one where they are of this run.
type term struct {
	from, until time.Time // of the certificate
	held        time.Time // when it came, or was read
	// since when another authority than its own issues; zero: its own does, or it is not known
	// which
	foreign time.Time
	circle  bool      // it came from another one although it was known which issues
	asked   time.Time // the last request for its successor; zero: none yet
	jitter  float64   // in [0,1), the certificate's own
}

// lifetime of the certificate.
func (t term) lifetime() time.Duration { return max(0, t.until.Sub(t.from)) }

// next is when to ask. That is after a third of the lifetime and up to a tenth more, so that
// coordinators may be away for half of it; or soon, when another authority has taken over, spread
// such that a whole shard does not ask at once. An answer that does not come is asked for again
// after a tenth of the time that is left.
func (t term) next() time.Time {
	life := t.lifetime()
	after := life/3 + part(life/10, t.jitter)
	due := t.from.Add(after)
	if byHeld := t.held.Add(after); byHeld.Before(due) {
		due = byHeld // the clock was behind, or was set back
	}
	if !t.foreign.IsZero() {
		early := t.foreign.Add(part(min(earlySpread, life/10), t.jitter))
		if t.circle {
			early = t.held.Add(min(mostPause, life/10))
		}
		if early.Before(due) {
			due = early
		}
	}
	if !t.asked.IsZero() {
		if again := t.asked.Add(t.pause()); again.After(due) {
			due = again
		}
	}
	return due
}

// pause is how long an answer is waited for before the next request.
func (t term) pause() time.Duration {
	left := t.until.Sub(t.asked)
	return max(min(leastPause, t.lifetime()/10), min(mostPause, left/10))
}

// urgent reports whether the end is so near that a person should know.
func (t term) urgent(now time.Time) bool { return t.until.Sub(now) < t.lifetime()/4 }

func part(of time.Duration, jitter float64) time.Duration { return time.Duration(float64(of) * jitter) }
