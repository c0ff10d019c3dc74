package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// After a stop the clock counts once it has gone evenly, and not apart from others, for a day.
// Until then, and after each change of it, only the time with a leader does.
//
// proves DAY-5, SAFE-13
func TestTheClockCountsAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stop = 30 * dayLong
		began := time.Now()
		term := &term{}
		term.agreeOn(began.Add(-stop), began)
		check := func(what string, change time.Duration, apart bool, behind time.Duration) {
			t.Helper()
			now := time.Now().Add(change)
			past, known := term.surelyPast(now, apart)
			if d := now.Sub(past); !known || d != behind {
				t.Errorf("%s: %s before now, want %s", what, d, behind)
			}
		}
		check("at first", 0, false, stop)
		<-time.After(dayLong - time.Second)
		check("before a day", 0, false, stop)
		<-time.After(time.Second)
		check("after a day", 0, false, 0)
		check("the clock is put forward", time.Hour, false, stop+time.Hour)
		<-time.After(dayLong / 2)
		check("half a day later", time.Hour, false, stop+time.Hour)
		<-time.After(dayLong / 2)
		check("a day later", time.Hour, false, 0)
		check("the clocks differ", time.Hour, true, stop+time.Hour)
		<-time.After(dayLong / 2)
		check("half a day after that", time.Hour, false, stop+time.Hour)
		<-time.After(dayLong / 2)
		check("a day after that", time.Hour, false, 0)
	})
}

// A replica whose clock is ahead does not make a day over by leading twice: its second term goes on
// from what its first one knew to be past, not from what that one's clock said.
//
// proves DAY-5, SAFE-13
func TestAClockAheadCountsInNoLaterTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := store.Served{At: time.Now()}
		for range 3 {
			<-time.After(time.Minute)
			var term term
			term.agreeOn(note.SurelyPast(), time.Now())
			<-time.After(time.Hour)
			ahead := time.Now().Add(dayLong)
			past, known := term.surelyPast(ahead, false) // the others are away, and compare nothing
			if !known || past.After(time.Now()) {
				t.Errorf("%s is called past at %s", past, time.Now())
			}
			note = store.Served{At: ahead, Past: past}
		}
		if late := time.Since(note.Past); late != 3*time.Minute {
			t.Errorf("what is past is %s behind, want the time without a leader alone", late)
		}
	})
}
