package certificate

import "time"

const (
	// earlySpread is the longest time over which agents spread their requests after a change of the
	// issuing authority.
	earlySpread = 30 * time.Second
	// maxPause and minPause bound the time between two requests.
	maxPause = 10 * time.Minute
	minPause = time.Second
)

// schedule decides when to request the next certificate. Its event times are from this machine's
// clock, with a monotonic reading if they are of this run.
type schedule struct {
	from, until time.Time // of the certificate
	held        time.Time // when it arrived or was read
	// when an authority other than its own began to issue; zero: its own issues, or the issuer is
	// unknown
	foreign      time.Time
	stillForeign bool      // renewed, but again not by the current issuer
	asked        time.Time // the last request for its successor; zero: none yet
	jitter       float64   // in [0,1), fixed for the certificate
}

// lifetime of the certificate.
func (t schedule) lifetime() time.Duration { return max(0, t.until.Sub(t.from)) }

// next returns when to ask: after a third of the lifetime and up to a tenth more, so that
// coordinators may be away for half of it. After a change of the authority it is soon, spread so
// that not all agents of a shard ask at once. An unanswered request is repeated after a tenth of
// the remaining time.
func (t schedule) next() time.Time {
	life := t.lifetime()
	after := life/3 + fraction(life/10, t.jitter)
	due := t.from.Add(after)
	if byHeld := t.held.Add(after); byHeld.Before(due) {
		due = byHeld // the clock was behind, or was set back
	}
	if !t.foreign.IsZero() {
		early := t.foreign.Add(fraction(min(earlySpread, life/10), t.jitter))
		if t.stillForeign {
			early = t.held.Add(min(maxPause, life/10))
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

// pause returns how long to wait for an answer before the next request.
func (t schedule) pause() time.Duration {
	left := t.until.Sub(t.asked)
	return max(min(minPause, t.lifetime()/10), min(maxPause, left/10))
}

// urgent reports whether the certificate expires so soon that an operator should know.
func (t schedule) urgent(now time.Time) bool { return t.until.Sub(now) < t.lifetime()/4 }

func fraction(of time.Duration, jitter float64) time.Duration {
	return time.Duration(float64(of) * jitter)
}
