package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// After a stop the clock counts once it has gone evenly, and not apart from others, for a day.
// Until then, and after each change of it, only the time with a leader does, from what was known.
//
// proves DAY-5, SAFE-13
func TestTheClockCountsAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stop = 30 * dayLong
		began := time.Now()
		var p knownPast
		p.takeUp(store.Served{At: began.Add(-stop)}, began)
		check := func(what string, change time.Duration, apart bool, behind time.Duration) {
			t.Helper()
			now := time.Now().Add(change)
			past, known := p.until(now, apart)
			if d := now.Sub(past); !known || d != behind {
				t.Errorf("%s: %s before now, want %s", what, d, behind)
			}
		}
		check("at first", 0, false, stop)
		<-time.After(dayLong - time.Second)
		check("before a day", 0, false, stop)
		<-time.After(time.Second)
		check("after a day", 0, false, 0)
		check("the clock is put forward", time.Hour, false, time.Hour)
		<-time.After(dayLong / 2)
		check("the clocks differ half a day later", time.Hour, true, time.Hour)
		<-time.After(dayLong / 2)
		check("half a day after that", time.Hour, false, time.Hour)
		<-time.After(dayLong / 2)
		check("a day after that", time.Hour, false, 0)
		check("the clock is put back", 0, false, 0)
		check("the clock is put forward again", time.Hour, false, time.Hour)
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
			var p knownPast
			p.takeUp(note, time.Now().Add(dayLong))
			<-time.After(time.Hour)
			ahead := time.Now().Add(dayLong)
			past, known := p.until(ahead, false) // the others are away, and compare nothing
			if !known || past.After(time.Now()) {
				t.Errorf("%s is called past at %s", past, time.Now())
			}
			note = served(&p, ahead)
		}
		if late := time.Since(note.Past); late != 3*time.Minute {
			t.Errorf("what is past is %s behind, want the time without a leader alone", late)
		}
	})
}

// served is what a leader notes.
func served(p *knownPast, now time.Time) store.Served {
	note := store.Served{At: now}
	note.Past, note.Claimed, note.Even = p.record(now, false)
	return note
}

// After a long stop the clock counts again though no leader works for a whole day. Only the times
// without a leader since about two days are missing.
//
// proves DAY-5, SAFE-13
func TestTheClockCountsThoughLeadersChangeDaily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := store.Served{At: time.Now().Add(-30 * dayLong)}
		for night := range 10 {
			<-time.After(5 * time.Minute)
			var p knownPast
			p.takeUp(note, time.Now())
			<-time.After(20 * time.Hour)
			note = served(&p, time.Now())
			if late := time.Since(note.Past); night > 1 && late > 15*time.Minute {
				t.Errorf("after %d nights what is past is %s behind", night+1, late)
			}
		}
	})
}

// So it does on a host that sleeps every night, and whose clock is put forward then.
//
// proves DAY-5, SAFE-13
func TestTheClockCountsThoughItsHostSleepsDaily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p knownPast
		p.takeUp(store.Served{At: time.Now().Add(-30 * dayLong)}, time.Now())
		var slept time.Duration
		for night := range 10 {
			<-time.After(16 * time.Hour)
			slept += 8 * time.Hour
			now := time.Now().Add(slept)
			if past, _ := p.until(now, false); night > 3 && now.Sub(past) > 3*8*time.Hour {
				t.Errorf("after %d nights what is past is %s behind", night+1, now.Sub(past))
			}
		}
	})
}

// What a clock has shown is a claim only as long as no next leader's contradicts it: a clock ahead
// gains nothing though its replica leads for most of each day.
//
// proves DAY-5, SAFE-13
func TestTheNextLeadersClockContradictsOneThatIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		note := store.Served{At: time.Now()}
		for range 10 {
			for _, leads := range []struct{ off, hours time.Duration }{{dayLong, 16}, {0, 4}} {
				var p knownPast
				p.takeUp(note, time.Now().Add(leads.off))
				for range leads.hours {
					<-time.After(time.Hour)
					if note = served(&p, time.Now().Add(leads.off)); note.Past.After(time.Now()) {
						t.Fatalf("%s is called past at %s", note.Past, time.Now())
					}
				}
			}
		}
	})
}
