package certificate

import (
	"testing"
	"time"
)

// proves SEC-3
func TestWhenToRenew(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	at := func(after time.Duration) time.Time { return from.Add(after) }
	for name, c := range map[string]struct {
		schedule schedule
		want     time.Duration // after from
	}{
		"after a third": {schedule{until: at(30 * day), held: from}, 10 * day},
		"with jitter": {
			schedule{until: at(30 * day), held: from, jitter: 0.5},
			11*day + 12*time.Hour,
		},
		"a life of seconds":    {schedule{until: at(6 * time.Second), held: from}, 2 * time.Second},
		"the clock was behind": {schedule{until: at(3 * time.Hour), held: at(-time.Hour)}, 0},
		"the clock is ahead":   {schedule{until: at(3 * time.Hour), held: at(time.Hour)}, time.Hour},
		"another issues":       {schedule{until: at(30 * day), held: from, foreign: at(day)}, day},
		"another issues, spread": {
			schedule{until: at(30 * day), held: from, foreign: at(day), jitter: 0.5},
			day + 15*time.Second,
		},
		"another issues, short life": {schedule{
			until: at(time.Minute), held: from, foreign: at(10 * time.Second),
			jitter: 0.5,
		}, 13 * time.Second},
		"another issues, due anyway": {schedule{until: at(3 * day), held: from, foreign: at(2 * day)}, day},
		"the wrong one again": {
			schedule{until: at(30 * day), held: from, foreign: from, stillForeign: true},
			10 * time.Minute,
		},
		"the wrong one again, short life": {
			schedule{until: at(time.Minute), held: from, foreign: from, stillForeign: true},
			6 * time.Second,
		},
		"no answer": {
			schedule{until: at(30 * day), held: from, asked: at(10 * day)},
			10*day + 10*time.Minute,
		},
		"no answer, an hour left": {
			schedule{until: at(30 * day), held: from, asked: at(30*day - time.Hour)},
			30*day - 54*time.Minute,
		},
		"no answer, seconds left": {
			schedule{until: at(30 * day), held: from, asked: at(30*day - 5*time.Second)},
			30*day - 4*time.Second,
		},
		"no answer, ended": {
			schedule{until: at(30 * day), held: from, asked: at(31 * day)},
			31*day + time.Second,
		},
		"no answer, a life of seconds": {
			schedule{until: at(3 * time.Second), held: from, asked: at(time.Second)},
			1300 * time.Millisecond,
		},
		"no answer, and another issues": {
			schedule{until: at(30 * day), held: from, foreign: at(day), asked: at(day)},
			day + 10*time.Minute,
		},
		"no answer to an early one, regular": {schedule{until: at(30 * day), held: from, asked: at(day)}, 10 * day},
	} {
		t.Run(name, func(t *testing.T) {
			c.schedule.from = from
			if got := c.schedule.next().Sub(from); got != c.want {
				t.Errorf("it is asked %v after the beginning, want %v", got, c.want)
			}
		})
	}
}

// For any jitter and any number of missing answers there are many attempts before the certificate
// expires.
//
// proves SEC-3
func TestThereAreManyTriesBeforeTheEnd(t *testing.T) {
	from := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, life := range []time.Duration{3 * time.Second, time.Minute, 3 * time.Hour, 30 * 24 * time.Hour} {
		for _, jitter := range []float64{0, 0.999} {
			tm := schedule{from: from, until: from.Add(life), held: from, jitter: jitter}
			tries := 0
			for due := tm.next(); due.Before(tm.until); due = tm.next() {
				if due.Sub(from) < life/3 || tries == 0 && due.Sub(from) > life/2 {
					t.Errorf("life %v, jitter %v: asked after %v", life, jitter, due.Sub(from))
				}
				tm.asked = due
				tries++
			}
			if tries < 5 {
				t.Errorf("life %v, jitter %v: %d tries before the end", life, jitter, tries)
			}
		}
	}
}
