package journal

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// MaxEntries is how many entries a replica keeps: some 20 MiB. A shard with a thousand machines
// writes them in a week, or in the worst hour of a storm.
const MaxEntries = 20_000

// Entry is an entry of the journal, with its name below events/.
type Entry struct {
	store.JournalEntry
	Name string // sorts in the order of time
}

// Memory is the newest part of the journal.
type Memory struct {
	keys store.Keys
	most int

	mu       sync.RWMutex
	entries  []Entry // in the order of their names
	since    time.Time
	read     bool
	verdicts map[string]Entry // the last one of each instance
	moved    chan struct{}    // closed and replaced whenever there is something new
}

// New returns an empty memory for the newest entries of a shard's journal, at most most of them.
func New(keys store.Keys, most int) *Memory {
	return &Memory{keys: keys, most: most, verdicts: map[string]Entry{}, moved: make(chan struct{})}
}

// View calls read with the entries, the oldest first, and the time since which none is missing,
// which is zero if none is. It reports whether the journal was read yet. The entries must not be
// kept or changed.
func (m *Memory) View(read func(entries []Entry, since time.Time)) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.read {
		return false
	}
	read(m.entries, m.since)
	return true
}

// Verdict returns the last verdict on an instance that a leader journaled.
func (m *Memory) Verdict(instance string) (Entry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, found := m.verdicts[instance]
	return e, found
}

// Moved is closed when the next entries have come.
func (m *Memory) Moved() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.moved
}

// begin replaces all by what was listed.
func (m *Memory) begin(entries []Entry, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entries, m.since, m.read = entries, since, true
	m.verdicts = map[string]Entry{}
	for _, e := range entries {
		m.judge(e)
	}
	m.trim()
	m.advance()
}

// apply applies changes of the journal.
func (m *Memory) apply(events []store.Event) {
	if len(events) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := map[string]bool{}
	for _, e := range events {
		if e.Deleted {
			if name, ok := m.nameOf(e.KV.Key); ok {
				gone[name] = true
			}
			continue
		}
		entry, err := m.decode(e.KV)
		if err != nil {
			continue
		}
		m.insert(entry)
		m.judge(entry)
	}
	if len(gone) > 0 { // a lease of an hour has ended, with all its entries
		m.entries = slices.DeleteFunc(m.entries, func(e Entry) bool { return gone[e.Name] })
		maps.DeleteFunc(m.verdicts, func(_ string, e Entry) bool { return gone[e.Name] })
	}
	m.trim()
	m.advance()
}

// insert puts an entry where its name belongs: the clocks of two replicas differ a little.
func (m *Memory) insert(e Entry) {
	at, same := len(m.entries), false
	if n := len(m.entries); n > 0 && m.entries[n-1].Name >= e.Name {
		at, same = slices.BinarySearchFunc(m.entries, e.Name, func(e Entry, name string) int {
			return strings.Compare(e.Name, name)
		})
	}
	if same {
		m.entries[at] = e
		return
	}
	m.entries = slices.Insert(m.entries, at, e)
}

func (m *Memory) judge(e Entry) {
	if e.Kind == store.EntryVerdict {
		m.verdicts[e.Instance] = e
	}
}

// trim drops the oldest, a tenth of them at once.
func (m *Memory) trim() {
	over := len(m.entries) - m.most
	if over <= 0 {
		return
	}
	over = min(over+m.most/10, len(m.entries)-1)
	m.since = m.entries[over].At
	m.entries = slices.Clone(m.entries[over:])
	for id, e := range m.verdicts {
		if e.Name < m.entries[0].Name {
			delete(m.verdicts, id)
		}
	}
}

func (m *Memory) advance() {
	close(m.moved)
	m.moved = make(chan struct{})
}

func (m *Memory) nameOf(key string) (string, bool) {
	return strings.CutPrefix(key, m.keys.Of(store.KindEvents))
}

func (m *Memory) decode(kv store.KV) (Entry, error) {
	v, err := store.Decode[store.JournalEntry](kv)
	if err != nil {
		return Entry{}, err
	}
	name, ok := m.nameOf(kv.Key)
	if !ok {
		return Entry{}, errors.New("not below events/")
	}
	return Entry{JournalEntry: v.Record, Name: name}, nil
}
