package guard

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// Refusal is a refused request of a client.
type Refusal struct {
	Rule string // SEC-1: identity, SEC-2: joining, SEC-5: bounds
	What string // what was refused, such as "join refused"
	// Why is one of a few fixed phrases. Refusals are grouped by it, so it contains nothing that
	// came from outside.
	Why     string
	Address string // the client's address, with its port
	Claimed string // the name that the client gave, "" if none
	Proved  bool   // a certificate proves Claimed
	Detail  string // more about the cause; may come from outside
}

// How much memory and how many writes refusals can cost (SEC-5). Those beyond these bounds are only
// counted.
const (
	maxTallies     = 1000             // combinations of reason and source that are counted one by one
	maxReasons     = 100              // reasons; the program has fewer
	journalBurst   = 32               // journal entries in a row
	journalEvery   = 30 * time.Second // and one per interval after these: a week of refusals must fit into etcd
	sumEvery       = time.Minute      // how often the refusals without an entry of their own are summed up
	maxNamed       = 5                // sources named in a sum
	lastSumTimeout = 2 * time.Second  // for the last sum of a replica that stops
	journalTimeout = 10 * time.Second // for one journal entry
)

// Refusals records what was refused. The first refusal of a kind from a source goes into log and
// journal at once. The others are counted, and every minute each kind gets one entry with the sum.
// Add never waits, and memory and writes are bounded.
type Refusals struct {
	log     *slog.Logger
	journal func(ctx context.Context, entry store.JournalEntry)
	entries chan store.JournalEntry

	mu      sync.Mutex
	limiter *rate.Limiter // of entries about a single refusal
	tallies map[tallyKey]*tally
	rest    map[refusalKind]*tally        // of refusals that found no room in tallies
	recent  map[refusalKind]store.Refused // the last refusals of clients that name an instance
}

// refusalKind is what was refused and why.
type refusalKind struct{ rule, what, why string }

type tallyKey struct {
	kind   refusalKind
	source string
}

// tally counts refusals that have no journal entry yet.
type tally struct {
	count   int
	claimed string // the name that was claimed last
	idle    bool   // no refusal since the last sum
}

// NewRefusals returns a Refusals. It writes to the journal while Run runs.
func NewRefusals(log *slog.Logger, journal func(ctx context.Context, entry store.JournalEntry)) *Refusals {
	return &Refusals{
		log: log, journal: journal, entries: make(chan store.JournalEntry, journalBurst),
		limiter: rate.NewLimiter(rate.Every(journalEvery), journalBurst),
		tallies: map[tallyKey]*tally{}, rest: map[refusalKind]*tally{}, recent: map[refusalKind]store.Refused{},
	}
}

// Add records a refusal. It returns at once.
func (r *Refusals) Add(f Refusal) {
	f.Claimed, f.Detail = printable(f.Claimed), clip.End(f.Detail, protocol.MaxText)
	level := slog.LevelDebug
	if r.count(f) {
		level = slog.LevelWarn
	}
	r.log.Log(context.Background(), level, "refused",
		"what", f.What, "rule", f.Rule, "why", f.Why, "from", f.Address, "claimed", f.Claimed, "detail", f.Detail)
}

// count counts a refusal and reports whether it got a journal entry of its own.
func (r *Refusals) count(f Refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	why := refusalKind{f.Rule, f.What, f.Why}
	r.remember(why, f)
	key := tallyKey{why, clip.End(SourceOf(f.Address), protocol.MaxName)}
	t, known := r.tallies[key]
	if !known && len(r.tallies) >= maxTallies {
		if t = r.rest[why]; t == nil {
			if len(r.rest) >= maxReasons {
				return false
			}
			t = &tally{}
			r.rest[why] = t
		}
		t.count++
		return false
	}
	if !known {
		t = &tally{}
		r.tallies[key] = t
	}
	t.idle, t.claimed = false, f.Claimed
	if !known && r.limiter.Allow() {
		select {
		case r.entries <- f.entry():
			return true
		default: // the journal is behind: count it instead
		}
	}
	t.count++
	return false
}

// remember keeps the first refusal of each minute. r.mu must be held.
func (r *Refusals) remember(why refusalKind, f Refusal) {
	minute := time.Now().UTC().Truncate(time.Minute)
	last, known := r.recent[why]
	if !identity.IsName(f.Claimed) || !known && len(r.recent) >= maxReasons || last.At.Equal(minute) {
		return
	}
	r.recent[why] = store.Refused{
		Rule: f.Rule, What: f.What, Why: f.Why, Detail: f.Detail, Instance: f.Claimed, Proved: f.Proved,
		From: clip.End(f.Address, protocol.MaxName), At: minute,
	}
}

// Recent returns what was refused lately to clients that name an instance: the last refusal for
// each reason, the newest first. Refusals without a name, such as port scans, are in the journal
// alone.
func (r *Refusals) Recent() []store.Refused {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []store.Refused
	for kind, f := range r.recent {
		if time.Since(f.At) >= store.RefusedFor {
			delete(r.recent, kind)
			continue
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b store.Refused) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.What, b.What), cmp.Compare(a.Why, b.Why))
	})
	return all[:min(len(all), store.MaxRefused)]
}

// entry returns the journal entry about one refusal.
func (f Refusal) entry() store.JournalEntry {
	e := store.JournalEntry{
		Rule: f.Rule, What: f.What, Why: f.Why, Facts: []store.Fact{{Kind: store.FactFrom, Name: f.Address}},
	}
	switch {
	case identity.IsName(f.Claimed):
		e.Instance, e.Claimed = f.Claimed, !f.Proved
		who := store.Fact{Kind: store.FactSays, Name: f.Claimed}
		if f.Proved {
			who.Kind = store.FactCertificate
		}
		e.Facts = append(e.Facts, who)
	case f.Claimed != "":
		e.Facts = append(e.Facts, store.Fact{Kind: store.FactSays, Name: f.Claimed})
	}
	if f.Detail != "" {
		e.Facts = append(e.Facts, store.Fact{Text: f.Detail})
	}
	return e
}

// Run writes to the journal until ctx ends.
func (r *Refusals) Run(ctx context.Context) {
	tick := time.NewTicker(sumEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSumTimeout)
			defer cancel()
			for len(r.entries) > 0 && last.Err() == nil {
				r.journal(last, <-r.entries)
			}
			r.writeSums(last)
			return
		case e := <-r.entries:
			r.write(ctx, e)
		case <-tick.C:
			r.writeSums(ctx)
		}
	}
}

func (r *Refusals) write(ctx context.Context, e store.JournalEntry) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	r.journal(ctx, e)
}

func (r *Refusals) writeSums(ctx context.Context) {
	for _, e := range r.takeSums() {
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("refused", "what", e.What, "rule", e.Rule, "why", e.Why, "from",
			strings.Join(reason.Lines(e.Facts), "; "))
		r.write(ctx, e)
	}
}

// takeSums returns one entry for each reason, resets the tallies and deletes those that were idle
// since the last call.
func (r *Refusals) takeSums() []store.JournalEntry {
	type part struct {
		source string
		tally
	}
	parts, total := map[refusalKind][]part{}, map[refusalKind]int{}
	r.mu.Lock()
	for key, t := range r.tallies {
		if t.count > 0 {
			parts[key.kind] = append(parts[key.kind], part{key.source, *t})
			total[key.kind] += t.count
		}
		if t.idle {
			delete(r.tallies, key)
		}
		t.count, t.idle = 0, true
	}
	for why, t := range r.rest {
		total[why] += t.count
	}
	r.rest = map[refusalKind]*tally{}
	r.mu.Unlock()

	out := make([]store.JournalEntry, 0, len(total))
	for why, n := range total {
		from := parts[why]
		slices.SortFunc(from, func(a, b part) int {
			if a.count != b.count {
				return b.count - a.count
			}
			return strings.Compare(a.source, b.source)
		})
		e := store.JournalEntry{Rule: why.rule, What: fmt.Sprintf("%s: %d more", why.what, n), Why: why.why}
		named := 0
		for _, p := range from[:min(len(from), maxNamed)] {
			e.Facts = append(e.Facts, store.Fact{Kind: store.FactFrom, Name: p.source, Count: p.count, By: p.claimed})
			named += p.count
		}
		if named < n {
			e.Facts = append(e.Facts, store.Fact{Kind: store.FactFrom, Count: n - named})
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b store.JournalEntry) int {
		return strings.Compare(a.Rule+a.What+a.Why, b.Rule+b.What+b.Why)
	})
	return out
}

// printable returns a claimed name in a form that can be written anywhere.
func printable(name string) string {
	if name == "" || identity.IsName(name) {
		return name
	}
	return strconv.QuoteToASCII(clip.End(name, protocol.MaxName))
}
