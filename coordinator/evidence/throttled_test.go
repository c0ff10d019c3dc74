package evidence_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// The time of a restart begins when the provider no longer puts it off, as long as the agent has an
// open stream: then nothing is wrong with the machine.
//
// proves HEAL-1, PROV-5
func TestARestartThatIsPutOff(t *testing.T) {
	for name, c := range map[string]struct {
		stream store.StreamState
		err    error
		put    bool
	}{
		"by throttling":            {store.StreamOpen, provider.ThrottledFor(time.Minute), true},
		"though its stream broke":  {store.StreamLost, provider.ThrottledFor(time.Minute), false},
		"by another error":         {store.StreamOpen, errors.New("no"), false},
		"by refused credentials":   {store.StreamOpen, provider.ErrCredentials, false},
		"by none: it is restarted": {store.StreamOpen, nil, false},
	} {
		w := newWorld(t)
		w.run("web", "web-0")
		w.lead()
		w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, Instance: "web-0", State: c.stream})
		w.evidence.Restarted("web-0", "token", c.err)
		got, want := w.instance("web", "web-0").Calls.PutOff, w.now.Add(time.Minute)
		if c.put && !got.Equal(want) || !c.put && !got.IsZero() {
			t.Errorf("%s: put off until %v, want %t", name, got, c.put)
		}
	}
}

// A new leader may ask for a restart that an earlier one has recorded once the machine is listed:
// the time of the restart begins then, if the agent has an open stream.
//
// proves HEAL-1
func TestARestartWaitsForTheFirstList(t *testing.T) {
	for stream, put := range map[store.StreamState]bool{store.StreamOpen: true, store.StreamLost: false} {
		w := newWorld(t)
		w.run("web", "web-0")
		rec := w.content.Instances["web-0"].Record
		rec.Phase, rec.Restart = store.Stopping, &store.Restart{Level: store.RestartMachine, Token: "token", Listed: "b"}
		w.put(keys.Instance("web-0"), rec)
		w.put(keys.Alive("web-0"), store.Alive{Schema: store.Schema, Instance: "web-0", State: stream})
		w.lead()
		w.instance("web", "web-0")
		w.pass(time.Hour)
		first := w.now
		for range 2 {
			w.evidence.ListedBy("mem", w.now, []provider.Machine{{Instance: "web-0"}}, w.content)
			got := w.instance("web", "web-0").Calls.PutOff
			if put != got.Equal(first) || !put && !got.IsZero() {
				t.Errorf("stream %s: put off until %s, want %t", stream, got, put)
			}
			w.pass(time.Minute)
		}
	}
}
