package network

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Rule says what becomes of what one set of parties sends to another. Several may hold at once:
// then a thing is silent or refused if one of them says so, delays add up, and the slowest speed
// counts.
type Rule struct {
	// From and To are the parties; nil: any. They are asked from many goroutines, and only when
	// rules change or a connection is new.
	From, To func(party string) bool
	// Only is which traffic it concerns: There what From sends to To, Back what To sends to From,
	// whoever has opened the connection. For Refuse and Reset it is who opens: There if From
	// connects to To.
	Only Direction

	// Silent: nothing arrives. Bytes wait, connections stay, and new ones are neither made nor
	// refused. It all arrives when that is over.
	Silent bool
	// Refuse: who connects is reset at once. Connections that there are stay.
	Refuse bool
	// Reset: connections that there are when the rule is imposed end with an RST for both sides.
	// New ones are none of its business.
	Reset bool

	Delay, Jitter time.Duration // how long everything takes, and how much longer it may
	Loss          float64       // of all that is said so much is said again, as TCP does; below 1
	Slow          int           // bytes a second; 0: no limit
}

// Direction is which way traffic goes.
type Direction int

// The directions.
const (
	Both Direction = iota
	There
	Back
)

// Any is whoever is named.
func Any(parties ...string) func(string) bool {
	return func(party string) bool { return slices.Contains(parties, party) }
}

func (r *Rule) concerns(from, to string) bool {
	return r.Only != Back && meets(r.From, from) && meets(r.To, to) ||
		r.Only != There && meets(r.From, to) && meets(r.To, from)
}

func meets(set func(string) bool, party string) bool { return set == nil || set(party) }

// book is the rules that hold at one time. It never changes.
type book struct {
	rules  []*Rule
	turned chan struct{} // closed when another one holds
}

func newBook(rules []*Rule) *book { return &book{rules: rules, turned: make(chan struct{})} }

// refuses reports whether one party may not connect to another.
func (b *book) refuses(from, to string) bool {
	return slices.ContainsFunc(b.rules, func(r *Rule) bool { return r.Refuse && r.concerns(from, to) })
}

// terms are what holds for what one party sends to another.
func (b *book) terms(from, to string) terms {
	var t terms
	arrives := 1.0
	for _, r := range b.rules {
		if !r.concerns(from, to) {
			continue
		}
		t.silent = t.silent || r.Silent
		t.delay += r.Delay
		t.jitter += r.Jitter
		arrives *= 1 - r.Loss
		if r.Slow > 0 && (t.slow == 0 || r.Slow < t.slow) {
			t.slow = r.Slow
		}
	}
	t.loss = 1 - arrives
	return t
}

// terms are all rules for one direction in one.
type terms struct {
	silent        bool
	delay, jitter time.Duration
	loss          float64
	slow          int
}

// retransmit is how long TCP waits at first before it says something again; it doubles. Nothing is
// said more than mostTimes again, so that a heavy loss is no silence.
const (
	retransmit = 200 * time.Millisecond
	mostTimes  = 6
)

// trip is how long something is under way.
func (t terms) trip() time.Duration {
	d := t.delay
	if t.jitter > 0 {
		d += rand.N(t.jitter)
	}
	again := retransmit
	for times := 0; times < mostTimes && rand.Float64() < t.loss; times++ {
		d += again
		again *= 2
	}
	return d
}

// piece is how much is read at once: little where it is slow, so that it does not come in a few
// heaps.
func (t terms) piece() int {
	if t.slow == 0 {
		return pieceSize
	}
	return min(pieceSize, 1+t.slow/10)
}

// sending is how long so many bytes take to be put on the way.
func (t terms) sending(bytes int) time.Duration {
	if t.slow == 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(t.slow)
}
