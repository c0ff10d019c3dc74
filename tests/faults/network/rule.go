package network

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Rule says what happens to the traffic from one set of parties to another. Several may hold at
// once: traffic is silent or refused if one of them says so, delays add up, and the lowest speed
// counts.
type Rule struct {
	// From and To are the parties; nil: any. They are asked from many goroutines, and only when
	// rules change or a connection is new.
	From, To func(party string) bool
	// Only is which traffic it concerns: There what From sends to To, Back what To sends to From,
	// either side that has opened the connection. For Refuse and Reset it is who opens: There if From
	// connects to To.
	Only Direction

	// Silent: nothing arrives. Bytes wait, connections stay, and new ones are neither accepted nor
	// refused. Everything arrives when the silence ends.
	Silent bool
	// Refuse: new connections are reset at once. Existing ones stay.
	Refuse bool
	// Reset: existing connections end with an RST for both sides when the rule is imposed. New ones
	// are not affected.
	Reset bool

	Delay, Jitter time.Duration // delay, and maximum of the additional random delay
	Loss          float64       // share of the data that is retransmitted, as by TCP; below 1
	Slow          int           // bytes per second; 0: no limit
}

// Direction is the direction of traffic.
type Direction int

// The directions.
const (
	Both Direction = iota
	There
	Back
)

// Any matches the given names.
func Any(parties ...string) func(string) bool {
	return func(party string) bool { return slices.Contains(parties, party) }
}

func (r *Rule) concerns(from, to string) bool {
	return r.Only != Back && meets(r.From, from) && meets(r.To, to) ||
		r.Only != There && meets(r.From, to) && meets(r.To, from)
}

func meets(set func(string) bool, party string) bool { return set == nil || set(party) }

// book is the rules that hold at one time. It is immutable.
type book struct {
	rules  []*Rule
	turned chan struct{} // closed when another one replaces it
}

func newBook(rules []*Rule) *book { return &book{rules: rules, turned: make(chan struct{})} }

// refuses reports whether one party may not connect to another.
func (b *book) refuses(from, to string) bool {
	return slices.ContainsFunc(b.rules, func(r *Rule) bool { return r.Refuse && r.concerns(from, to) })
}

// terms are the rules for traffic from one party to another.
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

// terms are all rules for one direction combined.
type terms struct {
	silent        bool
	delay, jitter time.Duration
	loss          float64
	slow          int
}

// retransmit is TCP's first retransmission timeout, which doubles. Nothing is retransmitted more
// than maxTimes, so that heavy loss is not silence.
const (
	retransmit = 200 * time.Millisecond
	maxTimes   = 6
)

// trip returns how long something is in transit.
func (t terms) trip() time.Duration {
	d := t.delay
	if t.jitter > 0 {
		d += rand.N(t.jitter)
	}
	again := retransmit
	for times := 0; times < maxTimes && rand.Float64() < t.loss; times++ {
		d += again
		again *= 2
	}
	return d
}

// piece is how much is read at once: little on a slow link, so that it does not arrive in a few
// chunks.
func (t terms) piece() int {
	if t.slow == 0 {
		return pieceSize
	}
	return min(pieceSize, 1+t.slow/10)
}

// sending returns how long so many bytes take to send.
func (t terms) sending(bytes int) time.Duration {
	if t.slow == 0 {
		return 0
	}
	return time.Duration(bytes) * time.Second / time.Duration(t.slow)
}
