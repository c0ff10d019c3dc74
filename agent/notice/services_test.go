package notice

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ec2 speaks IMDSv2 with tokens that end after so many uses.
type ec2 struct {
	mu     sync.Mutex
	tokens int
	left   int    // uses of the present token
	uses   int    // of each token
	action string // "": there is no notice
	date   time.Time
}

func (e *ec2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.date.IsZero() {
		w.Header().Set("Date", e.date.UTC().Format(http.TimeFormat))
	}
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		if r.Header.Get("X-aws-ec2-metadata-token-ttl-seconds") != "21600" {
			http.Error(w, "no time to live", http.StatusBadRequest)
			return
		}
		e.tokens++
		e.left = e.uses
		fmt.Fprintf(w, "token-%d", e.tokens)
	case r.Header.Get("X-aws-ec2-metadata-token") != fmt.Sprintf("token-%d", e.tokens) || e.left == 0:
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	case r.Method == http.MethodGet && r.URL.Path == "/latest/meta-data/spot/instance-action" && e.action != "":
		e.left--
		fmt.Fprint(w, e.action)
	default:
		e.left--
		http.NotFound(w, r)
	}
}

func (e *ec2) set(action string, date time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.action, e.date = action, date
}

func (e *ec2) used() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tokens
}

// proves SPOT-1
func TestAWS(t *testing.T) {
	e := &ec2{uses: 3}
	s := newService(t, e.ServeHTTP)
	w := watch(t, Spec{Source: AWS, Endpoint: s.URL + "/"})
	until(t, "several tokens to end", func() bool { return e.used() > 3 })
	if n := w.Latest(); n != nil {
		t.Fatalf("404 is no notice: %+v", n)
	}
	// The machine's clock is wrong by years; the service's is not.
	e.set(`{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`, time.Date(2017, 9, 18, 8, 20, 0, 0, time.UTC))
	began := time.Now()
	n := w.appears()
	if n.Kind != "terminate" || !strings.Contains(n.Why, "2017-09-18T08:22:00Z") {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 2*time.Minute)
	tokens := e.used()
	until(t, "the notice to be seen many times", func() bool { return e.used() > tokens+3 })
	if again := w.Latest(); again != n {
		t.Errorf("seen again it is another notice: %+v, was %+v", again, n)
	}
	e.set("", time.Time{})
	w.goes()
	if w.log.count("cannot be looked for") != 0 {
		t.Errorf("tokens that end are no failure: %s", w.log.text.String())
	}
}

// proves SPOT-1
func TestGCP(t *testing.T) {
	var mu sync.Mutex
	preempted, event := "FALSE", "NONE"
	set := func(p, e string) {
		mu.Lock()
		defer mu.Unlock()
		preempted, event = p, e
	}
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		switch r.URL.Path {
		case "/computeMetadata/v1/instance/preempted":
			fmt.Fprint(w, preempted)
		case "/computeMetadata/v1/instance/maintenance-event":
			fmt.Fprintln(w, event)
		default:
			http.NotFound(w, r)
		}
	})
	w := watch(t, Spec{Source: GCP, Endpoint: s.URL})
	set("FALSE", "TERMINATE_ON_HOST_MAINTENANCE")
	if n := w.appears(); n.Kind != "maintenance" || !n.Ends.IsZero() {
		t.Errorf("notice is %+v", n)
	}
	set("FALSE", "MIGRATE_ON_HOST_MAINTENANCE")
	w.goes()
	began := time.Now()
	set("TRUE", "NONE")
	n := w.appears()
	if n.Kind != "preempted" {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 30*time.Second)
	set("FALSE", "NONE")
	w.goes()
}

const azureDocument = `{"DocumentIncarnation": 7, "Events": [
	{"EventId": "A", "EventStatus": "Scheduled", "EventType": "Preempt", "ResourceType": "VirtualMachine", "Resources": ["web_0"], "NotBefore": "Mon, 19 Sep 2016 18:00:00 GMT"},
	{"EventId": "B", "EventStatus": "Scheduled", "EventType": "Reboot", "ResourceType": "VirtualMachine", "Resources": ["web_1"], "NotBefore": "Mon, 19 Sep 2016 18:10:00 GMT"}%s]}`

// proves SPOT-1
func TestAzure(t *testing.T) {
	var mu sync.Mutex
	mine := ""
	set := func(to string) {
		mu.Lock()
		defer mu.Unlock()
		mine = to
	}
	var asked atomic.Int32
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
			http.Error(w, "Bad request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Date", "Mon, 19 Sep 2016 18:29:00 GMT")
		switch r.URL.Path {
		case "/metadata/instance/compute/name":
			fmt.Fprint(w, "WEB_1")
		case "/metadata/scheduledevents":
			if asked.Add(1) == 1 {
				select { // switching it on takes longer than any other answer may
				case <-time.After(400 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(w, azureDocument, mine)
		}
	})
	w := watch(t, Spec{Source: Azure, Endpoint: s.URL})
	until(t, "it to be asked", func() bool { return asked.Load() > 3 })
	if n := w.Latest(); n != nil || w.log.count("cannot be looked for") != 0 {
		t.Fatalf("a neighbour's preemption and a reboot are none of ours: %+v\n%s", n, w.log.text.String())
	}
	began := time.Now()
	const event = `, {"EventId": "C", "EventStatus": %q, "EventType": "Preempt", "Resources": ["web_0", "web_1"], "NotBefore": %q, "Description": "capacity"}`
	set(fmt.Sprintf(event, "Scheduled", "Mon, 19 Sep 2016 18:29:30 GMT"))
	n := w.appears()
	if n.Kind != "preempt" || !strings.HasSuffix(n.Why, ": capacity") {
		t.Errorf("notice is %+v", n)
	}
	ends(t, n, began, 30*time.Second)
	set(fmt.Sprintf(event, "Started", ""))
	more := asked.Load() + 5
	until(t, "it to be asked again", func() bool { return asked.Load() > more })
	if again := w.Latest(); again != n {
		t.Errorf("the event began, and now the notice is another: %+v", again)
	}
	set("") // Azure has called it off
	w.goes()
}

// Of several events the one that ends the machine first counts; one that has begun leaves no time.
//
// proves SPOT-1
func TestWhichEventOfAzureEndsTheMachine(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	const event = `{"EventId": %q, "EventType": "Terminate", "Resources": ["web_1"], "NotBefore": %q, "Description": %q}`
	events := func(all ...string) string { return `{"Events": [` + strings.Join(all, ", ") + `]}` }
	late, soon := fmt.Sprintf(event, "L", in(time.Hour), "late"), fmt.Sprintf(event, "S", in(10*time.Minute), "soon")
	now := fmt.Sprintf(event, "N", "", "now")
	for _, c := range []struct {
		events, why string
		left        time.Duration
	}{
		{events(late, soon), "soon", 10 * time.Minute},
		{events(soon, late), "soon", 10 * time.Minute},
		{events(late), "late", time.Hour},
		{events(late, now, soon), "now", 0},
	} {
		s := newService(t, azureAnswers(c.events))
		began := time.Now()
		n := watch(t, Spec{Source: Azure, Endpoint: s.URL}).appears()
		if ends(t, n, began, c.left); !strings.HasSuffix(n.Why, ": "+c.why) {
			t.Errorf("notice is %+v, want %s", n, c.why)
		}
	}
}

// A token is replaced long before the service stops accepting it.
//
// proves SPOT-1
func TestATokenIsReplacedBeforeItEnds(t *testing.T) {
	e := &ec2{uses: 1 << 30}
	s := &aws{metadata: metadata{client: newClient(), base: newService(t, e.ServeHTTP).URL}}
	for range 3 {
		if _, err := s.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if left := time.Until(s.renew); e.used() != 1 || left > tokenTTL*3/4 || left < tokenTTL/4 {
		t.Errorf("%d tokens were asked for, and the next one is in %s", e.used(), left)
	}
	s.renew = time.Now()
	if _, err := s.look(t.Context()); err != nil || e.used() != 2 {
		t.Errorf("once it is due %d were asked for, %v", e.used(), err)
	}
}

func azureAnswers(events string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metadata/instance/compute/name" {
			fmt.Fprint(w, "web_1")
			return
		}
		fmt.Fprint(w, events)
	}
}
