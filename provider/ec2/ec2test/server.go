package ec2test

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leasehold/leasehold/provider/amazon/amazontest"
)

// Config is what the account has.
type Config struct {
	Region  string
	Keys    map[string]string // access keys and their secrets
	Session string            // the session token that requests must have; "" is none
	Subnets map[string]Subnet // by ID
	Images  map[string]string // by ID: the root device
	Types   map[string]int    // machine types, and their processors

	Processors int // that may run on demand; 0: no limit
	Spots      int // Spot machines that may run; 0: no limit

	Lag      time.Duration // until a new machine is shown
	TagLag   time.Duration // until its tags are: at least Lag
	BootTime time.Duration // from pending to running
	StopTime time.Duration // from stopping to stopped, from shutting-down to terminated

	PerSecond float64 // requests that are allowed; 0: no limit
	Burst     int
	PageSize  int // most machines of a page, whatever is asked for; 0: as asked for

	// RefusedBind has a refused RunInstances use up its client token.
	RefusedBind bool

	// Run is what a machine does between its boot and its end, in a goroutine. The context ends when
	// the machine goes down. If it returns before, the machine has shut itself down. Nil: nothing.
	Run func(context.Context, Boot)
}

// Subnet is a subnet of the account.
type Subnet struct {
	Zone string // availability zone
	Free int    // addresses
}

// Boot is one boot of a machine.
type Boot struct {
	ID       string
	Number   int // 1 for the first
	UserData []byte
	Print    func(text string) // on its console
}

// Server is the account. It is an http.Handler.
type Server struct {
	config Config
	bucket *rate.Limiter

	mu       sync.Mutex
	made     int
	machines map[string]*machine
	tokens   map[string]token  // by availability zone and client token
	room     map[[2]string]int // by type and availability zone: how many more
	used     map[string]int    // addresses, by subnet
	broken   []string          // reasons for which the next launches fail
	expired  bool              // the session token
	requests map[string]int    // by action
	doubles  map[string]bool   // instances that had two live machines at once
	closed   bool
	running  sync.WaitGroup
}

type token struct {
	request string // what it was used for
	machine string // "": the request was refused
}

// New makes an account without machines.
func New(c Config) *Server {
	s := &Server{
		config: c, machines: map[string]*machine{}, tokens: map[string]token{}, room: map[[2]string]int{},
		used:     map[string]int{},
		requests: map[string]int{}, doubles: map[string]bool{}, bucket: rate.NewLimiter(rate.Inf, 0),
	}
	if c.PerSecond > 0 {
		s.bucket = rate.NewLimiter(rate.Limit(c.PerSecond), c.Burst)
	}
	return s
}

// Close ends all machines, and waits until what they do has ended.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	for _, m := range s.machines {
		m.halt()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// ServeHTTP answers one request of the Query API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	account := amazontest.Account{
		Region: s.config.Region, Service: "ec2", Keys: s.config.Keys, Session: s.config.Session, Expired: s.expired,
	}
	s.mu.Unlock()
	form, f := account.Read(w, r)
	var answer any
	if f == nil {
		answer, f = s.act(form)
	}
	amazontest.Respond(w, true, answer, f)
}

func (s *Server) act(form url.Values) (any, *amazontest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[form.Get("Action")]++
	if !s.bucket.Allow() {
		return nil, &amazontest.Fault{
			Status: http.StatusServiceUnavailable, Code: "RequestLimitExceeded",
			Message: "Request limit exceeded.",
		}
	}
	s.forget()
	q := amazontest.NewQuery(form)
	do := map[string]func(*amazontest.Query) (any, *amazontest.Fault){
		"RunInstances": s.run, "DescribeInstances": s.describe, "DescribeSubnets": s.describeSubnets,
		"DescribeImages": s.describeImages, "StopInstances": s.stop, "StartInstances": s.start,
		"RebootInstances": s.reboot, "TerminateInstances": s.terminate, "GetConsoleOutput": s.console,
	}[form.Get("Action")]
	if do == nil {
		return nil, amazontest.Refuse("InvalidAction", "The action %s is not valid for this web service.", form.Get("Action"))
	}
	return do(q)
}

// Terminated machines are listed for an hour, and client tokens kept for a day longer.
const (
	listedFor = time.Hour
	tokenFor  = 24 * time.Hour
)

func (s *Server) forget() {
	for id, m := range s.machines {
		if m.state == terminated && time.Since(m.since) > listedFor+tokenFor {
			delete(s.machines, id)
		}
	}
	for k, t := range s.tokens {
		if t.machine != "" && s.machines[t.machine] == nil {
			delete(s.tokens, k)
		}
	}
}

// SetRoom says how many more machines of a type there is room for in an availability zone.
func (s *Server) SetRoom(typ, zone string, machines int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room[[2]string{typ, zone}] = machines
}

// BreakNext has the next launches be accepted and then fail, for reasons in EC2's words.
func (s *Server) BreakNext(reasons ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, reasons...)
}

// Expire says whether the session token has expired.
func (s *Server) Expire(expired bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = expired
}

// ForgetTokens has all client tokens expire.
func (s *Server) ForgetTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Requests are how often each action was asked for.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]int{}
	for k, v := range s.requests {
		out[k] = v
	}
	return out
}

// Doubles are the instances that ever had two live machines at once, by shard and instance.
func (s *Server) Doubles() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.doubles {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Live are the IDs of machines that are not terminated.
func (s *Server) Live() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id, m := range s.machines {
		if m.state != terminated {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}
