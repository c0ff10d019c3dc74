package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
)

// book is a journal in a store, and what a replica remembers of it.
type book struct {
	t    *testing.T
	st   *memstore.Store
	keys store.Keys
	now  time.Time
}

func newBook(t *testing.T) *book {
	t.Helper()
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	return &book{t: t, st: db.Connect(), keys: store.KeysOf("test"), now: time.Now().UTC()}
}

func (b *book) key(ago time.Duration) string { return b.keys.Event(b.now.Add(-ago), "x") }

func (b *book) commit(writes ...store.Write) {
	b.t.Helper()
	if _, err := b.st.Commit(b.t.Context(), store.Txn{Writes: writes}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *book) tell(ago time.Duration, e store.JournalEntry) {
	b.t.Helper()
	e.Schema, e.At = store.Schema, b.now.Add(-ago)
	b.commit(store.Put(b.key(ago), store.Encode(e)))
}

func (b *book) follow(most int) *journal.Memory {
	b.t.Helper()
	m := journal.New(b.keys, most)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, b.st) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			b.t.Errorf("run: %v", err)
		}
	})
	return m
}

// until waits until what is remembered is so.
func (b *book) until(m *journal.Memory, what string, so func([]journal.Entry, time.Time) bool) {
	b.t.Helper()
	deadline := time.After(time.Minute)
	for {
		moved, ok := m.Moved(), false
		var last string
		m.View(func(entries []journal.Entry, since time.Time) {
			ok, last = so(entries, since), fmt.Sprint(whats(entries), since)
		})
		if ok {
			return
		}
		select {
		case <-moved:
		case <-deadline:
			b.t.Fatalf("%s: not within a minute: %s", what, last)
		}
	}
}

func whats(entries []journal.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.What)
	}
	return all
}

func TestMemoryFollowsTheJournal(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.tell(48*time.Hour, store.JournalEntry{What: "old"})
	b.tell(time.Hour, store.JournalEntry{What: "lost", Kind: store.EntryVerdict, Verdict: store.Lost, Instance: "web-0"})
	b.commit(store.Put(b.key(30*time.Minute), []byte("no entry")))
	m := b.follow(100)
	shows := func(want ...string) {
		t.Helper()
		b.until(m, fmt.Sprint(want), func(entries []journal.Entry, _ time.Time) bool {
			return fmt.Sprint(whats(entries)) == fmt.Sprint(want)
		})
	}
	shows("old", "lost")
	if v, found := m.Verdict("web-0"); !found || v.Verdict != store.Lost {
		t.Errorf("verdict: %v, %v", v, found)
	}
	b.tell(0, store.JournalEntry{What: "new"})
	shows("old", "lost", "new")
	b.tell(time.Minute, store.JournalEntry{What: "of a clock behind"})
	shows("old", "lost", "of a clock behind", "new")
	b.tell(-time.Second, store.JournalEntry{
		What: "live", Kind: store.EntryVerdict, Verdict: store.Live,
		Instance: "web-0",
	})
	b.commit(store.Delete(b.key(48*time.Hour)), store.Delete(b.key(30*time.Minute)))
	shows("lost", "of a clock behind", "new", "live")
	if v, _ := m.Verdict("web-0"); v.Verdict != store.Live {
		t.Errorf("verdict: %v", v)
	}
}

// Verdicts go with their entries: instances come and go for as long as a replica runs.
func TestMemoryForgetsTheVerdictsOfExpiredEntries(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	verdict := func(ago time.Duration, instance string, v store.Verdict) {
		b.tell(ago, store.JournalEntry{What: instance, Kind: store.EntryVerdict, Verdict: v, Instance: instance})
	}
	verdict(48*time.Hour, "web-0", store.Lost)
	verdict(47*time.Hour, "web-1", store.Suspect)
	verdict(time.Hour, "web-1", store.Live)
	m := b.follow(100)
	shows := func(want ...string) {
		t.Helper()
		b.until(m, fmt.Sprint(want), func(entries []journal.Entry, _ time.Time) bool {
			return fmt.Sprint(whats(entries)) == fmt.Sprint(want)
		})
	}
	shows("web-0", "web-1", "web-1")
	b.commit(store.Delete(b.key(48*time.Hour)), store.Delete(b.key(47*time.Hour)))
	shows("web-1")
	if v, found := m.Verdict("web-0"); found {
		t.Errorf("the verdict of an entry that has expired is still there: %v", v.Verdict)
	}
	if v, _ := m.Verdict("web-1"); v.Verdict != store.Live {
		t.Errorf("verdict: %v, want the later one", v.Verdict)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for n := range 60 { // half of them in the last quarter of an hour
		b.tell(time.Duration(60-n)*time.Hour, store.JournalEntry{What: fmt.Sprint("h", n)})
		b.tell(time.Duration(900-n)*time.Second, store.JournalEntry{What: fmt.Sprint("s", n)})
	}
	const most = 70
	m := b.follow(most)
	b.until(m, "the newest", func(entries []journal.Entry, since time.Time) bool {
		return len(entries) >= 60 && len(entries) <= most && entries[len(entries)-1].What == "s59" &&
			since.Before(entries[0].At) && b.now.Sub(since) < 60*time.Hour
	})
	for n := range most {
		b.tell(-time.Duration(n)*time.Second, store.JournalEntry{What: fmt.Sprint("n", n)})
	}
	b.until(m, "no more than it may", func(entries []journal.Entry, since time.Time) bool {
		if len(entries) > most {
			t.Errorf("%d entries are kept, of %d", len(entries), most)
		}
		return entries[len(entries)-1].What == fmt.Sprint("n", most-1) && since.Equal(entries[0].At)
	})
}

func TestMemoryReadsAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.tell(time.Hour, store.JournalEntry{What: "before"})
	m := b.follow(100)
	b.until(m, "the first", func(entries []journal.Entry, _ time.Time) bool { return len(entries) == 1 })
	b.st.Faults().Cut()
	b.st.Faults().Mend()
	b.tell(0, store.JournalEntry{What: "after"})
	b.until(m, "both", func(entries []journal.Entry, _ time.Time) bool {
		return fmt.Sprint(whats(entries)) == "[before after]"
	})
}
