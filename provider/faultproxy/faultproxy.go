package faultproxy

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Kind is what a fault does to a request.
type Kind string

// The kinds of fault.
const (
	Refuse  Kind = "refuse"  // Fault.Answer is the answer; the server sees nothing of the request
	Lose    Kind = "lose"    // the connection breaks before the request reaches the server
	Swallow Kind = "swallow" // the server carries the request out, and the connection breaks before its answer
	Cut     Kind = "cut"     // the connection breaks in the middle of the answer's body
	Stale   Kind = "stale"   // the answer is one that the same request got at most Fault.Age ago
)

// Fault is something that goes wrong.
type Fault struct {
	Kind Kind
	// When chooses requests; nil is all of them.
	When func(r *http.Request, body []byte) bool
	// From and Until are since the proxy was made; Until 0 is no end.
	From, Until time.Duration
	// Chance hits that share of the chosen requests; 0 is all of them.
	Chance float64
	// Times is how many requests are hit at most; 0 is no limit.
	Times int

	Answer Answer        // of Refuse
	Age    time.Duration // of Stale
}

// Answer is what a server says.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Proxy stands before a server. It is an http.Handler.
type Proxy struct {
	server http.Handler
	begun  time.Time

	mu     sync.Mutex
	faults []*Fault
	chance *rand.Rand
	hits   map[Kind]int
	past   map[string][]dated // answers by request, the oldest first
}

type dated struct {
	at     time.Time
	answer Answer
}

// New makes a proxy. The seed decides which requests a Chance hits.
func New(server http.Handler, seed uint64, faults ...Fault) *Proxy {
	p := &Proxy{
		server: server, begun: time.Now(), chance: rand.New(rand.NewPCG(seed, seed)), hits: map[Kind]int{},
		past: map[string][]dated{},
	}
	for _, f := range faults {
		p.Add(f)
	}
	return p
}

// Add has one more thing go wrong.
func (p *Proxy) Add(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// Clear has nothing go wrong any more.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Hits are how many requests each kind of fault has hit.
func (p *Proxy) Hits() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[Kind]int{}
	for k, n := range p.hits {
		out[k] = n
	}
	return out
}

// maxBody is the largest request that the proxy passes on.
const maxBody = 1 << 20

// ServeHTTP passes a request on, or has it fail.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	same := r.Method + " " + r.URL.String() + "\n" + string(body)
	fault, stale := p.choose(r, body, same)
	switch fault.Kind {
	case Refuse:
		fault.Answer.write(w, len(fault.Answer.Body))
		return
	case Lose:
		panic(http.ErrAbortHandler)
	case Stale:
		stale.write(w, len(stale.Body))
		return
	default: // the server sees it
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	p.server.ServeHTTP(rec, r)
	answer := Answer{rec.status, rec.header, rec.body.String()}
	p.remember(same, answer)
	switch fault.Kind {
	case Swallow:
		panic(http.ErrAbortHandler)
	case Cut:
		answer.write(w, len(answer.Body)/2)
		if err := http.NewResponseController(w).Flush(); err != nil {
			panic(fmt.Errorf("the server's connection cannot be flushed: %w", err))
		}
		panic(http.ErrAbortHandler)
	default:
		answer.write(w, len(answer.Body))
	}
}

// choose returns the fault that hits a request, and the answer if that is an old one.
func (p *Proxy) choose(r *http.Request, body []byte, same string) (Fault, Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := time.Since(p.begun)
	for i, f := range p.faults {
		switch {
		case since < f.From, f.Until > 0 && since >= f.Until:
			continue
		case f.When != nil && !f.When(r, body):
			continue
		case f.Chance > 0 && p.chance.Float64() >= f.Chance:
			continue
		}
		var old Answer
		if f.Kind == Stale {
			at := slices.IndexFunc(p.past[same], func(d dated) bool { return time.Since(d.at) <= f.Age })
			if at < 0 {
				continue // nothing to be stale with
			}
			old = p.past[same][at].answer
		}
		p.hits[f.Kind]++
		hit := *f
		if f.Times == 1 {
			p.faults = slices.Delete(p.faults, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		return hit, old
	}
	return Fault{}, Answer{}
}

// remember keeps an answer for as long as some fault may bring it again.
func (p *Proxy) remember(same string, a Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest time.Duration
	for _, f := range p.faults {
		longest = max(longest, f.Age)
	}
	if longest == 0 {
		clear(p.past)
		return
	}
	p.past[same] = append(slices.DeleteFunc(p.past[same], func(d dated) bool { return time.Since(d.at) > longest }),
		dated{time.Now(), a})
}

// write writes so many bytes of an answer, and promises all.
func (a Answer) write(w http.ResponseWriter, bytes int) {
	for k, v := range a.Header {
		w.Header()[k] = v
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(a.Body)))
	w.WriteHeader(max(a.Status, 100))
	_, _ = io.WriteString(w, a.Body[:bytes]) // a client that has gone is its own affair
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header                  { return r.header }
func (r *recorder) WriteHeader(status int)               { r.status = status }
func (r *recorder) Write(text []byte) (n int, err error) { return r.body.Write(text) }
