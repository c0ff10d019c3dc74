package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	testKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	testURL = "https://hooks.example/services/verysecret"
)

// receiver is the other side of a webhook, in memory. It checks each signature with another
// implementation of Standard Webhooks.
type receiver struct {
	t *testing.T

	mu       sync.Mutex
	answer   func(e *Event) int // the HTTP status; nil: 204
	received []Event            // those that it took
	bodies   []string           // of all requests
}

func (r *receiver) RoundTrip(q *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	verify, err := webhooks.NewWebhook(testKey)
	if err != nil {
		return nil, err
	}
	if err := verify.VerifyIgnoringTimestamp(body, q.Header); err != nil { // its clock is not the test's
		r.t.Errorf("signature: %v", err)
	}
	var cloud struct {
		SpecVersion, ID, Source, Type, Subject string
		Data                                   Event
	}
	if err := json.Unmarshal(body, &cloud); err != nil || cloud.SpecVersion != "1.0" || cloud.ID != cloud.Data.ID ||
		cloud.ID != q.Header.Get("Webhook-Id") || cloud.Source == "" || cloud.Type == "" {
		r.t.Errorf("no CloudEvent: %v: %s", err, body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
	status := http.StatusNoContent
	if r.answer != nil {
		status = r.answer(&cloud.Data)
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	if status/100 == 2 {
		r.received = append(r.received, cloud.Data)
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")),
	}, nil
}

func (r *receiver) answers(with func(e *Event) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = with
}

// got returns the instances of the events that were taken.
func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, e := range r.received {
		out = append(out, e.Instance)
	}
	return out
}

// shard is a shard with one webhook.
type shard struct {
	*receiver
	db    *memstore.Database
	st    *memstore.Store
	keys  store.Keys
	hook  *Hook
	n     int
	lead  context.CancelFunc
	parts sync.WaitGroup
}

func inShard(t *testing.T, change func(*Config), test func(*shard)) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := Config{URLFile: write("url", testURL+"\n"), KeyFile: write("key", testKey+"\n")}
	if change != nil {
		change(&c)
	}
	synctest.Test(t, func(t *testing.T) {
		db := memstore.New(memstore.Config{})
		defer db.Close()
		hook, err := New("ops", "cloudevents", c)
		if err != nil {
			t.Fatal(err)
		}
		s := &shard{receiver: &receiver{t: t}, db: db, st: db.Connect(), keys: store.KeysOf("shop"), hook: hook}
		hook.client.Transport = s.receiver
		s.lead = func() {}
		s.leads()
		defer s.stops()
		test(s)
	})
}

// leads begins a term of leadership, after the last one has ended.
func (s *shard) leads() {
	s.stops()
	ctx, cancel := context.WithCancel(context.Background())
	s.lead = cancel
	d := &Deliverer{
		Store: s.st, Keys: s.keys, Shard: Shard{"shop", "5e4d"}, Hooks: []*Hook{s.hook}, Log: slog.New(slog.DiscardHandler),
		Commit: func(ctx context.Context, writes []store.Write) error {
			_, err := s.st.Commit(ctx, store.Txn{Writes: writes})
			return err
		},
	}
	s.parts.Go(func() { d.Run(ctx) })
	synctest.Wait()
}

func (s *shard) stops() {
	s.lead()
	s.parts.Wait()
}

// decides adds entries to the journal, in one transaction.
func (s *shard) decides(entries ...store.JournalEntry) store.Revision {
	s.t.Helper()
	var writes []store.Write
	for _, e := range entries {
		s.n++
		if e.At.IsZero() {
			e.At = time.Now().UTC()
		}
		e.Schema = store.Schema
		writes = append(writes, store.Put(s.keys.Event(e.At, fmt.Sprintf("%08d", s.n)), store.Encode(e)))
	}
	rev, err := s.st.Commit(s.t.Context(), store.Txn{Writes: writes})
	if err != nil {
		s.t.Fatal(err)
	}
	return rev
}

// record returns what etcd holds of the webhook.
func (s *shard) record() store.Webhook {
	s.t.Helper()
	kv, err := s.st.Get(s.t.Context(), s.keys.Webhook("ops"))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := store.Decode[store.Webhook](kv)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Record
}

func dead(instance string) store.JournalEntry {
	return store.JournalEntry{
		Kind: store.EntryVerdict, Rule: "DET-4", What: "dead", Why: "the provider says crashed: PASSWORD", Group: "web",
		Instance: instance, Verdict: store.Dead, Evidence: []string{"PASSWORD"}, Console: "PASSWORD",
		Cause:    store.Cause{Text: "PASSWORD"},
		Workload: &store.WorkloadExit{},
	}
}

// pass lets time go by, and all that is due happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// proves WEB-3
func TestDecisionsAreSentInOrder(t *testing.T) {
	inShard(t, func(c *Config) { c.Groups = []string{"web"} }, func(s *shard) {
		other := dead("other-0")
		other.Group = "other"
		s.decides(dead("web-0"), other)
		s.decides(store.JournalEntry{Rule: "DET-9", What: "healthy", Group: "web", Instance: "web-1"}) // info
		// by a replica whose clock is behind: it is committed later than its time says
		early := dead("web-2")
		early.At = time.Now().Add(-time.Minute).UTC()
		rev := s.decides(early)
		pass(10 * time.Second)
		if got := s.got(); !slices.Equal(got, []string{"web-0", "web-2"}) {
			t.Fatalf("received %v", got)
		}
		e := s.received[1]
		if e.ID != fmt.Sprintf("5e4d-%d-00000004", rev) || e.Revision != rev || e.Shard != "shop" ||
			e.Severity != reason.Warning || e.Headline != "web-2: is dead" {
			t.Errorf("the event is %+v", e)
		}
		for _, body := range s.bodies {
			if strings.Contains(body, "PASSWORD") {
				t.Errorf("an event holds what a workload or provider printed: %s", body)
			}
		}
		if r := s.record(); r.Trying != "" || r.DeadCount != 0 || r.Revision < rev-1 {
			t.Errorf("the record is %+v", r)
		}
	})
}

// A receiver that is away for less than an hour misses nothing, though leaders change.
//
// proves WEB-3
func TestReceiverIsAway(t *testing.T) {
	inShard(t, nil, func(s *shard) {
		s.answers(func(*Event) int { return 0 })
		var want []string
		for i := range partSize + 200 { // more than one request reads
			want = append(want, fmt.Sprintf("web-%d", i))
			s.decides(dead(want[i]))
		}
		pass(20 * time.Minute)
		s.leads()
		pass(20 * time.Minute)
		if got := s.got(); len(got) > 0 {
			t.Fatalf("received %v", got)
		}
		r := s.record()
		if r.Trying == "" || r.Why != "connection refused" || time.Since(r.Since) < 39*time.Minute {
			t.Errorf("the record is %+v: a new leader must not begin a new hour", r)
		}
		s.answers(nil)
		pass(2 * time.Minute)
		if got := s.got(); !slices.Equal(got, want) {
			t.Errorf("received %v", got)
		}
		pass(saveEvery)
		if r := s.record(); r.Trying != "" || r.Why != "" || r.DeadCount > 0 {
			t.Errorf("the record is %+v", r)
		}
	})
}

// proves WEB-3
func TestAfterAnHourAnEventIsGivenUp(t *testing.T) {
	inShard(t, nil, func(s *shard) {
		s.answers(func(*Event) int { return http.StatusServiceUnavailable })
		s.decides(dead("web-0"), dead("web-1"))
		pass(59 * time.Minute)
		if r := s.record(); r.DeadCount != 0 {
			t.Fatalf("the record is %+v", r)
		}
		pass(3 * time.Minute)
		r := s.record()
		if r.DeadCount != 1 || r.Missed != 1 || len(r.DeadLetters) != 1 || r.DeadLetters[0].Instance != "web-0" {
			t.Fatalf("the record is %+v", r)
		}
		s.leads() // it does not try again what was given up
		s.answers(nil)
		pass(2 * time.Minute)
		if got := s.got(); !slices.Equal(got, []string{"web-1"}) || s.received[0].Missed != 1 {
			t.Fatalf("received %v, the first with %d missed", got, s.received[0].Missed)
		}
		s.decides(dead("web-2"))
		pass(time.Minute)
		if e := s.received[1]; e.Instance != "web-2" || e.Missed != 0 {
			t.Errorf("received %+v", e)
		}
	})
}

// proves WEB-3
func TestMalformedEventDoesNotDelayOthers(t *testing.T) {
	inShard(t, nil, func(s *shard) {
		s.answers(func(e *Event) int {
			if e.Instance == "web-0" {
				return http.StatusBadRequest
			}
			return http.StatusOK
		})
		s.decides(dead("web-0"))
		s.decides(dead("web-1"))
		pass(5 * time.Second)
		if got := s.got(); !slices.Equal(got, []string{"web-1"}) || s.received[0].Missed != 1 {
			t.Errorf("received %+v", s.received)
		}
	})
}

// Entries that neither the journal nor etcd's history has any longer count as missed.
//
// proves WEB-3
func TestJournalForgotAnEvent(t *testing.T) {
	inShard(t, nil, func(s *shard) {
		s.answers(func(*Event) int { return 0 })
		s.stops()
		s.decides(dead("web-0"))
		e := dead("web-1")
		e.At = time.Now().UTC()
		s.decides(e)
		s.decides(dead("web-2"))
		if err := s.db.Faults().Compact(0); err != nil {
			t.Fatal(err)
		}
		s.leads()
		pass(5 * time.Second)
		forgotten := store.Delete(s.keys.Event(e.At, "00000002"))
		if _, err := s.st.Commit(t.Context(), store.Txn{Writes: []store.Write{forgotten}}); err != nil {
			t.Fatal(err)
		}
		s.answers(nil)
		pass(2 * time.Minute)
		if got := s.got(); !slices.Equal(got, []string{"web-0", "web-2"}) || s.received[1].Missed != 1 {
			t.Errorf("received %+v", s.received)
		}
	})
}

// Whatever the receiver does and however often leaders change, each event is received or given up,
// in order.
//
// proves WEB-3
func TestNothingIsLeftOut(t *testing.T) {
	for seed := range uint64(20) {
		inShard(t, nil, func(s *shard) {
			random, answers := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
			s.answers(func(*Event) int {
				return []int{0, http.StatusOK, http.StatusOK, http.StatusOK, http.StatusInternalServerError}[answers.IntN(5)]
			})
			for i := range 100 {
				s.decides(dead(fmt.Sprintf("web-%03d", 2*i)), dead(fmt.Sprintf("web-%03d", 2*i+1)))
				if random.IntN(5) == 0 {
					s.leads()
				}
				pass(time.Duration(random.IntN(4)) * time.Second)
			}
			pass(time.Hour)
			if len(s.record().DeadLetters) > 0 {
				t.Errorf("seed %d: given up: %+v", seed, s.record().DeadLetters)
			}
			ids, first := map[string]string{}, []string{}
			for _, e := range s.received {
				if id, again := ids[e.Instance]; !again {
					first = append(first, e.Instance)
					ids[e.Instance] = e.ID
				} else if id != e.ID {
					t.Errorf("seed %d: %s came as %s and as %s", seed, e.Instance, id, e.ID)
				}
			}
			if len(first) != 200 || !slices.IsSorted(first) {
				t.Errorf("seed %d: received %d events, in this order: %v", seed, len(first), first)
			}
		})
	}
}

// A leader whose clock was ahead costs the next one no event: entries are counted by their commits,
// also if etcd has forgotten the changes since.
//
// proves WEB-3, SAFE-13
func TestAClockThatWasAheadLosesNoEvent(t *testing.T) {
	for name, compacted := range map[string]bool{"etcd has the changes": false, "etcd has forgotten them": true} {
		inShard(t, nil, func(s *shard) {
			pass(time.Minute)
			s.decides(dead("web-0"))
			pass(10 * time.Second)
			s.stops()
			ahead := s.record()
			ahead.At = time.Now().Add(2 * time.Hour).UTC()
			s.put(ahead)
			s.decides(dead("web-1"))
			if compacted {
				if err := s.db.Faults().Compact(0); err != nil {
					t.Fatal(err)
				}
			}
			refused := 0
			s.answers(func(e *Event) int {
				if refused++; refused == 1 || e.Instance == "web-2" && refused < 6 {
					return http.StatusServiceUnavailable
				}
				return http.StatusOK
			})
			s.leads()
			pass(10 * time.Second)
			early := dead("web-2") // of a replica whose clock is further behind than any list looks back
			early.At = time.Now().Add(-3 * time.Hour).UTC()
			s.decides(early, dead("web-3"))
			pass(time.Minute)
			got := slices.Compact(s.got()) // a new leader may send the last one again
			if !slices.Equal(got, []string{"web-0", "web-1", "web-2", "web-3"}) {
				t.Errorf("%s: received %q", name, got)
			}
		})
	}
}

// The time for which an event was tried is counted by the clocks of the leaders that tried, however
// far apart they are.
//
// proves WEB-3, SAFE-13
func TestAnHourIsAnHourWhateverClocksSay(t *testing.T) {
	for _, off := range []time.Duration{-5 * time.Hour, 5 * time.Hour} {
		inShard(t, nil, func(s *shard) {
			s.answers(func(*Event) int { return 0 })
			s.decides(dead("web-0"))
			pass(30 * time.Minute)
			s.stops()
			other := s.record()
			other.Since = other.Since.Add(off)
			s.put(other)
			s.leads()
			pass(25 * time.Minute)
			if r := s.record(); r.DeadCount != 0 {
				t.Errorf("%s: given up after 55 minutes: %+v", off, r)
			}
			pass(10 * time.Minute)
			if r := s.record(); r.DeadCount != 1 {
				t.Errorf("%s: not given up after 65 minutes: %+v", off, r)
			}
		})
	}
}

// A record that a backup brought from another etcd counts revisions of that one.
//
// proves WEB-3
func TestARecordOfAnotherEtcd(t *testing.T) {
	inShard(t, nil, func(s *shard) {
		s.stops()
		restored := s.record()
		restored.Revision = 1 << 40
		s.put(restored)
		s.leads()
		s.decides(dead("web-0"))
		pass(10 * time.Second)
		if got := s.got(); !slices.Equal(got, []string{"web-0"}) {
			t.Errorf("received %q", got)
		}
	})
}

// put has etcd hold another record of the webhook.
func (s *shard) put(r store.Webhook) {
	s.t.Helper()
	write := store.Put(s.keys.Webhook("ops"), store.Encode(r))
	if _, err := s.st.Commit(s.t.Context(), store.Txn{Writes: []store.Write{write}}); err != nil {
		s.t.Fatal(err)
	}
}
