package upgrade

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/agent/version"
	"github.com/leasehold/leasehold/provider/clip"
)

// Bounds of an offer.
const (
	maxPrograms  = 8
	maxAddresses = 16
	maxToken     = 100
	maxWhy       = 500
)

const (
	// offerTime is how long an offer stays valid beyond Within if the coordinator does not say.
	offerTime = 7 * time.Minute
	// backTime is the time for an agent to leave, and to be back after Within.
	backTime = time.Minute
)

// Offer is a version that a coordinator offers.
type Offer struct {
	Token     string // identifies the offer
	Programs  []Program
	Addresses []string // addresses of coordinators that serve the programs
	// Downgrade allows it to replace a later version, if the statement allows it too.
	Downgrade bool
	// Within is how soon the new version must be acknowledged.
	Within time.Duration
	// Left is the time from now until the agent must be back; 0: unknown.
	Left time.Duration
}

// lastBegin returns the latest time at which its trial may begin. After a later start the agent
// would still be away when its silence counts as a loss.
func (o *Offer) lastBegin(now time.Time) time.Time {
	within, left := o.Within, o.Left
	if within <= 0 {
		within = defaultWithin
	}
	if left <= 0 {
		left = within + offerTime
	}
	return now.Add(left - within - backTime)
}

// Program is an offered program.
type Program struct {
	Statement string // signed
	Path      string // path at the coordinators that serve it
}

// Deps are a Manager's dependencies.
type Deps struct {
	// TLS returns a configuration that authenticates the shard's coordinators, or nil if nothing
	// does.
	TLS   func() *tls.Config
	Dial  func(ctx context.Context, address string) (net.Conn, error)
	Pause time.Duration // between two download attempts; 0: 5s
}

// Manager takes offers, one at a time. The agent's loop calls all its methods but Run, and none of
// them waits for the disk, which may hang for longer than a lease lasts.
type Manager struct {
	place *Place
	deps  Deps

	offers  chan *Offer
	changed chan struct{}

	disk      sync.Mutex // held while the state is written; mu may be taken after it, never before
	mu        sync.Mutex
	token     string    // token of the wanted offer; "": none
	state     state     // copy on write
	known     bool      // state was read from disk; nothing is written before
	ready     *trial    // downloaded and ready to be tried
	trial     *Trial    // recorded
	beginning bool      // the trial is being recorded or undone
	until     time.Time // the latest time at which a trial may begin
	writes    sync.WaitGroup
	within    time.Duration
}

// New returns a manager of a place's programs. A nil Manager takes no offer.
func New(place *Place, deps Deps) *Manager {
	if deps.Pause == 0 {
		deps.Pause = pause
	}
	m := &Manager{place: place, deps: deps, offers: make(chan *Offer, 1), changed: make(chan struct{}, 1)}
	m.state, m.known = place.load()
	return m
}

// Want sets the offered version; nil means none. Setting the same again changes nothing. A download
// for another offer is canceled, and a trial that has not begun is undone.
func (m *Manager) Want(o *Offer) {
	if m == nil {
		return
	}
	token := ""
	if o != nil && len(o.Token) <= maxToken {
		token = o.Token
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if token == m.token {
		return
	}
	m.token, m.ready = token, nil
	if m.trial != nil {
		m.undo(nil)
	}
	if token != "" {
		m.until = o.lastBegin(time.Now())
	}
	if token != "" && m.state.Last != nil && m.state.Last.Token == token {
		o = nil // it is over
	}
	if token == "" {
		o = nil
	}
	select {
	case <-m.offers: // Run has not taken it yet
	default:
	}
	m.offers <- o
}

// Changed signals that Ready or Last has changed. A nil manager has a nil channel.
func (m *Manager) Changed() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.changed
}

// Ready reports whether a new program waits to be tried.
func (m *Manager) Ready() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ready != nil
}

// Last returns the outcome of the last offer; nil: there was none.
func (m *Manager) Last() *Outcome {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Last
}

// Run takes offers until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	if m == nil {
		return
	}
	var work sync.WaitGroup
	defer m.writes.Wait()
	defer work.Wait()
	stop := func() {}
	for {
		select {
		case <-ctx.Done():
			stop()
			return
		case o := <-m.offers:
			stop()
			work.Wait() // two downloads would write one file
			stop = func() {}
			if o != nil {
				taking, end := context.WithCancel(ctx)
				stop = end
				work.Go(func() { m.take(taking, *o) })
			}
		}
	}
}

// take verifies an offer and downloads its program.
func (m *Manager) take(ctx context.Context, o Offer) {
	if over := m.learn(ctx, o); over {
		return
	}
	st, p, err := m.choose(o)
	if err != nil {
		m.conclude(o.Token, Outcome{Token: o.Token, Version: st.Version, Result: Refused, Why: err.Error()})
		return
	}
	if st.Version == m.place.Version {
		m.conclude(o.Token, Outcome{Token: o.Token, Version: st.Version, Result: Installed})
		return
	}
	m.place.Log.Info("new version of the agent is fetched", "version", st.Version)
	if err := m.fetch(ctx, st, p.Path, o.Addresses); err != nil {
		if ctx.Err() == nil {
			m.conclude(o.Token, Outcome{Token: o.Token, Version: st.Version, Result: Failed, Why: err.Error()})
		}
		return
	}
	over := m.place.over(m.present())
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != o.Token {
		return
	}
	m.within = o.Within
	m.ready = &trial{Token: o.Token, Version: st.Version, Program: program{
		File: fileOf(st), Statement: p.Statement, Over: over,
	}}
	m.signal()
}

// learn reads the state again where it could not be read when the agent started: it may have
// another version that runs here, or that this offer is over. It reports whether the offer is over,
// also because the state stays unknown: what is written then would take its place.
func (m *Manager) learn(ctx context.Context, o Offer) (over bool) {
	for {
		s, known, until := m.learned()
		if !known {
			var why error
			if s, known, why = m.place.open(); !known {
				if errors.Is(why, errNewer) || !time.Now().Before(until) {
					m.conclude(o.Token, Outcome{Token: o.Token, Result: Failed, Why: "state of agent upgrades: " + why.Error()})
					return true
				}
				select {
				case <-ctx.Done():
					return true
				case <-time.After(m.deps.Pause):
				}
				continue
			}
			m.mu.Lock()
			m.state, m.known = s, true
			m.signal()
			m.mu.Unlock()
		}
		return s.Last != nil && s.Last.Token == o.Token
	}
}

func (m *Manager) learned() (s state, known bool, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.known, m.until
}

func (m *Manager) present() state {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// stateFor returns the state, and whether this offer is still wanted.
func (m *Manager) stateFor(token string) (state, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state, m.token == token
}

// keep writes the present state once it holds the disk lock, unless the state on disk is unknown.
func (m *Manager) keep() {
	m.disk.Lock()
	defer m.disk.Unlock()
	if s, known, _ := m.learned(); known {
		m.place.save(s)
	}
}

// conclude records the outcome of an offer, so that it is not taken again.
func (m *Manager) conclude(token string, out Outcome) {
	out.Why = clip.Start(out.Why, maxWhy)
	if out.Result != Installed {
		m.place.Log.Warn("new version of the agent is not installed", "version", out.Version, "result", out.Result,
			"why", out.Why)
	}
	if m.setLast(token, &out) {
		m.keep()
	}
}

// setLast sets the outcome and reports whether the offer is still wanted.
func (m *Manager) setLast(token string, out *Outcome) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.token != token {
		return false
	}
	m.ready, m.state.Last = nil, out
	m.signal()
	return true
}

func (m *Manager) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// choose finds the program for this machine, if it may be installed.
func (m *Manager) choose(o Offer) (release.Statement, Program, error) {
	if len(o.Programs) > maxPrograms || len(o.Addresses) > maxAddresses {
		return release.Statement{}, Program{}, errors.New("the offer names too many programs or addresses")
	}
	var first error
	for _, p := range o.Programs {
		st, err := m.place.Keys.Open(p.Statement)
		switch {
		case err != nil:
			first = errors.Join(first, err)
			if errors.Is(err, release.ErrNoKey) {
				return st, p, err
			}
		case st.Platform == Platform():
			return st, p, m.allowed(st, o)
		}
	}
	if first != nil {
		return release.Statement{}, Program{}, first
	}
	return release.Statement{}, Program{}, fmt.Errorf("no program is offered for %s", Platform())
}

// allowed returns why a version must not replace this one; nil if it may.
func (m *Manager) allowed(st release.Statement, o Offer) error {
	switch own := m.place.Version; {
	case st.Version == own, version.Later(st.Version, own):
		return nil
	case !o.Downgrade:
		return fmt.Errorf("%s is not later than %s, and the group asks for no downgrade (agent.downgrade)", st.Version, own)
	case !st.Downgrade:
		return fmt.Errorf("%s is not later than %s, and its signed statement allows no downgrade", st.Version, own)
	}
	return nil
}

// Begin records the trial of the downloaded program in the background. Changed signals when Trial
// has it, or when Last says why not.
func (m *Manager) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ready == nil || m.beginning:
		return
	case !time.Now().Before(m.until):
		m.undo(m.late(m.ready))
		return
	}
	m.beginning = true
	ready := m.ready
	m.writes.Go(func() {
		m.disk.Lock()
		s, wanted := m.stateFor(ready.Token) // read after waiting: the disk may have been busy for long
		s.Trial = ready
		var err error
		if wanted {
			err = m.place.begin(s)
		}
		m.disk.Unlock()
		m.mu.Lock()
		m.beginning = false
		switch {
		case err != nil:
		case m.token != s.Trial.Token: // the offer was withdrawn meanwhile
			m.undo(nil)
		default:
			m.trial = &Trial{place: m.place, state: s, Within: m.within}
			m.signal()
		}
		m.mu.Unlock()
		if err != nil {
			m.conclude(s.Trial.Token, Outcome{
				Token: s.Trial.Token, Version: s.Trial.Version, Result: Failed, Why: err.Error(),
			})
		}
	})
}

// undo removes a recorded trial as if there had been none, except for an outcome. m.mu must be
// held.
func (m *Manager) undo(out *Outcome) {
	m.trial, m.beginning = nil, true
	if out != nil {
		m.ready, m.state.Last = nil, out
	}
	m.writes.Go(func() {
		m.keep()
		m.mu.Lock()
		defer m.mu.Unlock()
		m.beginning = false
		m.signal()
	})
}

// late returns the outcome of an offer whose trial would begin too late.
func (m *Manager) late(t *trial) *Outcome {
	const why = "the offer ends too soon for a trial"
	m.place.Log.Warn("new version of the agent is not installed", "version", t.Version, "result", Failed, "why", why)
	return &Outcome{Token: t.Token, Version: t.Version, Result: Failed, Why: why}
}

// Trial returns the recorded trial; nil if there is none or it would begin too late. The agent must
// end for it.
func (m *Manager) Trial() *Trial {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trial != nil && !time.Now().Before(m.until) {
		m.undo(m.late(m.trial.state.Trial))
	}
	return m.trial
}
