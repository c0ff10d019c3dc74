package leader_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/leader"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(d time.Duration) time.Time { return start.Add(d) }

// lists runs a List from begin to end and returns when the next one begins.
func lists(t *testing.T, l *leader.Lists, begin, end time.Duration, err error) time.Duration {
	t.Helper()
	settings := store.DefaultShardSettings()
	settings.ProviderPoll = store.Duration(time.Minute)
	l.Begin(after(begin))
	if at, ok := l.Next(); ok {
		t.Errorf("another List is to begin at %s while one runs", at)
	}
	l.End(after(end), settings, err)
	return next(t, l)
}

func next(t *testing.T, l *leader.Lists) time.Duration {
	t.Helper()
	at, ok := l.Next()
	if !ok {
		t.Fatal("no List is to begin")
	}
	return at.Sub(start)
}

// proves DET-3, DET-12
func TestListsComeEveryPollAndOnRequest(t *testing.T) {
	var l leader.Lists
	if at := next(t, &l); at > 0 {
		t.Errorf("the first List begins after %s", at)
	}
	if at := lists(t, &l, 0, 2*time.Second, nil); at != 62*time.Second {
		t.Errorf("the next List begins at %s, want provider_poll after the end of the last", at)
	}
	l.Request()
	l.Request()
	if at := next(t, &l); at > 10*time.Second {
		t.Errorf("a requested List begins at %s", at)
	}
	if at := lists(t, &l, 10*time.Second, 10500*time.Millisecond, nil); at != 11500*time.Millisecond {
		t.Errorf("the List after a requested one begins at %s, want a second after its end", at)
	}
	if at := lists(t, &l, 11500*time.Millisecond, 12*time.Second, nil); at != 72*time.Second {
		t.Errorf("then the next List begins at %s, want provider_poll later", at)
	}
}

// A List that runs when it is requested proves nothing: another one follows, no sooner than a
// second after it began.
//
// proves DET-3
func TestListBeginsAfterTheLastRequest(t *testing.T) {
	var l leader.Lists
	l.Begin(after(0))
	l.Request()
	l.End(after(100*time.Millisecond), store.DefaultShardSettings(), nil)
	if at := next(t, &l); at != time.Second {
		t.Errorf("the requested List begins at %s, want a second after the last began", at)
	}
}

func TestThrottledListsWait(t *testing.T) {
	var l leader.Lists
	at := lists(t, &l, 0, time.Second, provider.ThrottledFor(2*time.Minute))
	if at != 121*time.Second {
		t.Errorf("after throttling, the next List begins at %s", at)
	}
	if l.Request(); next(t, &l) != 121*time.Second {
		t.Errorf("a request overrides throttling: the next List begins at %s", next(t, &l))
	}
	if at := lists(t, &l, 121*time.Second, 122*time.Second, errors.New("refused")); at != 123*time.Second {
		t.Errorf("after a failed List that was requested, the next begins at %s", at)
	}
}
