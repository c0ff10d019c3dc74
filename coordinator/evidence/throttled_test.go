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
		got, want := w.instance("web", "web-0").Calls.Throttled, w.now.Add(time.Minute)
		if c.put && !got.Equal(want) || !c.put && !got.IsZero() {
			t.Errorf("%s: put off until %v, want %t", name, got, c.put)
		}
	}
}
