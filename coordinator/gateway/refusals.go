package gateway

import (
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
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
)

// Refusal is something that somebody wanted of this replica and did not get.
type Refusal struct {
	Rule string // SEC-1: who it is, SEC-2: joining, SEC-5: bounds
	What string // was refused: "join refused", say
	// Why is one of a few phrases that the program has: refusals are told apart by it. Nothing that came from outside is part of it.
	Why     string
	Address string // of whoever it was, with its port
	Claimed string // the name that it gave itself, "" if none
	Proved  bool   // Claimed is what its certificate says
	Detail  string // whatever else helps; may come from outside
}

// What strangers can make us remember and write (SEC-5). What is beyond is counted.
const (
	mostRefusers   = 1000             // told apart at once, by what they were refused and their address
	mostKinds      = 100              // of refusals; the program has fewer
	refusalsAtOnce = 32               // entries of the journal in a row
	refusalEvery   = 30 * time.Second // and one in so much time after these: what strangers do for a week must fit into etcd beside all else
	sumEvery       = time.Minute      // what was not told by itself is summed up
	mostNamed      = 5                // addresses in such a sum
	sumWait        = 2 * time.Second  // for the last sum of a replica that stops
	refusalWait    = 10 * time.Second // for one entry of the journal
)

// Refusals writes down what was refused: the first of a kind from an address at once, in log and journal, what follows as a sum for each kind
// every minute. It takes little memory and few writes, whoever comes however often, and holds nobody up.
type Refusals struct {
	log     *slog.Logger
	journal func(ctx context.Context, entry store.JournalEntry)
	entries chan store.JournalEntry

	mu    sync.Mutex
	pace  *rate.Limiter // of entries that tell of one refusal
	seen  map[refuser]*tally
	kinds map[refusalKind]*tally // of those that found no room in seen
}

// refusalKind is what was refused and why.
type refusalKind struct{ rule, what, why string }

// refuser is an address, without its port, that was refused for one reason.
type refuser struct {
	kind refusalKind
	host string
}

// tally counts what was not told yet.
type tally struct {
	untold  int
	claimed string // the last one
	quiet   bool   // nothing came since the last sum
}

// NewRefusals makes a record of refusals. What it has for the journal is written while Run runs.
func NewRefusals(log *slog.Logger, journal func(ctx context.Context, entry store.JournalEntry)) *Refusals {
	return &Refusals{
		log: log, journal: journal, entries: make(chan store.JournalEntry, refusalsAtOnce),
		pace: rate.NewLimiter(rate.Every(refusalEvery), refusalsAtOnce), seen: map[refuser]*tally{}, kinds: map[refusalKind]*tally{},
	}
}

// Add takes note of a refusal. It returns at once.
func (r *Refusals) Add(f Refusal) {
	host := hostOf(f.Address)
	f.Claimed, f.Detail = shown(f.Claimed), clip(f.Detail, mostText)
	kind := refusalKind{f.Rule, f.What, f.Why}
	if r.first(kind, host, f) {
		r.log.Warn("refused", "what", f.What, "rule", f.Rule, "why", f.Why, "from", f.Address, "claimed", f.Claimed, "detail", f.Detail)
	} else {
		r.log.Debug("refused", "what", f.What, "rule", f.Rule, "why", f.Why, "from", f.Address, "claimed", f.Claimed, "detail", f.Detail)
	}
}

// first says whether it is the first of its kind from there, and has that told; all others it counts.
func (r *Refusals) first(kind refusalKind, host string, f Refusal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	who := refuser{kind, host}
	t, known := r.seen[who]
	if !known && len(r.seen) >= mostRefusers {
		if t = r.kinds[kind]; t == nil {
			if len(r.kinds) >= mostKinds {
				return false
			}
			t = &tally{}
			r.kinds[kind] = t
		}
		t.untold++
		return false
	}
	if !known {
		t = &tally{}
		r.seen[who] = t
	}
	t.quiet, t.claimed = false, f.Claimed
	if !known && r.pace.Allow() {
		select {
		case r.entries <- f.entry():
			return true
		default: // the journal takes none at present
		}
	}
	t.untold++
	return false
}

// entry is the refusal as the journal tells it.
func (f Refusal) entry() store.JournalEntry {
	e := store.JournalEntry{Rule: f.Rule, What: f.What, Why: f.Why, Evidence: []string{"from " + f.Address}}
	switch {
	case identity.IsName(f.Claimed):
		e.Instance, e.Claimed = f.Claimed, !f.Proved
		who := "it says that it is "
		if f.Proved {
			who = "its certificate names "
		}
		e.Evidence = append(e.Evidence, who+f.Claimed)
	case f.Claimed != "":
		e.Evidence = append(e.Evidence, "it says that it is "+f.Claimed)
	}
	if f.Detail != "" {
		e.Evidence = append(e.Evidence, f.Detail)
	}
	return e
}

// Run writes the journal until ctx ends.
func (r *Refusals) Run(ctx context.Context) {
	tick := time.NewTicker(sumEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), sumWait)
			defer cancel()
			for len(r.entries) > 0 && last.Err() == nil {
				r.journal(last, <-r.entries)
			}
			r.tellSums(last)
			return
		case e := <-r.entries:
			r.write(ctx, e)
		case <-tick.C:
			r.tellSums(ctx)
		}
	}
}

func (r *Refusals) write(ctx context.Context, e store.JournalEntry) {
	ctx, cancel := context.WithTimeout(ctx, refusalWait)
	defer cancel()
	r.journal(ctx, e)
}

// tellSums tells of each kind how many were refused that nothing was told of, and forgets who did not come again.
func (r *Refusals) tellSums(ctx context.Context) {
	for _, e := range r.sums() {
		if ctx.Err() != nil {
			return
		}
		r.log.Warn("refused", "what", e.What, "rule", e.Rule, "why", e.Why, "from", strings.Join(e.Evidence, "; "))
		r.write(ctx, e)
	}
}

// sums are the entries for what was not told, by kind.
func (r *Refusals) sums() []store.JournalEntry {
	type part struct {
		host string
		tally
	}
	parts, total := map[refusalKind][]part{}, map[refusalKind]int{}
	r.mu.Lock()
	for who, t := range r.seen {
		if t.untold > 0 {
			parts[who.kind] = append(parts[who.kind], part{who.host, *t})
			total[who.kind] += t.untold
		}
		if t.quiet {
			delete(r.seen, who)
		}
		t.untold, t.quiet = 0, true
	}
	for kind, t := range r.kinds {
		total[kind] += t.untold
	}
	r.kinds = map[refusalKind]*tally{}
	r.mu.Unlock()

	out := make([]store.JournalEntry, 0, len(total))
	for kind, n := range total {
		from := parts[kind]
		slices.SortFunc(from, func(a, b part) int {
			if a.untold != b.untold {
				return b.untold - a.untold
			}
			return strings.Compare(a.host, b.host)
		})
		e := store.JournalEntry{Rule: kind.rule, What: fmt.Sprintf("%s: %d more", kind.what, n), Why: kind.why}
		named := 0
		for _, p := range from[:min(len(from), mostNamed)] {
			text := fmt.Sprintf("%d from %s", p.untold, p.host)
			if p.claimed != "" {
				text += ", the last said that it is " + p.claimed
			}
			e.Evidence = append(e.Evidence, text)
			named += p.untold
		}
		if named < n {
			e.Evidence = append(e.Evidence, fmt.Sprintf("%d from other addresses", n-named))
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b store.JournalEntry) int {
		return strings.Compare(a.Rule+a.What+a.Why, b.Rule+b.What+b.Why)
	})
	return out
}

// hostOf is what counts as one address: ports of a client differ with each connection, and who has one address of an IPv6 network has them all.
func hostOf(address string) string { return clip(guard.Place(address), mostName) }

// shown is a name as somebody claims it, such that it can be written anywhere.
func shown(name string) string {
	if name == "" || identity.IsName(name) {
		return name
	}
	return strconv.QuoteToASCII(clip(name, mostName))
}

// AtDoor takes note of whom the door has turned away (SEC-5).
func (r *Refusals) AtDoor(f guard.Refusal) {
	r.Add(Refusal{Rule: "SEC-5", What: "connection closed", Why: f.Why, Address: f.Address, Claimed: f.Name, Proved: f.Name != ""})
}
