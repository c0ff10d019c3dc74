package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/fake"
	"github.com/leasehold/leasehold/store"
)

// A provider without room is asked again and again. What each call was given a token for is not
// kept when it surely made nothing.
//
// proves SEC-2
func TestTokensOfCallsThatMadeNothingDoNotPileUp(t *testing.T) {
	inWorld(t, fake.Config{Boot: time.Second, Consistency: time.Second}, func(w *world) {
		for range 2000 {
			w.provider.Inject(fake.Fault{Call: fake.CallCreate, Err: provider.ErrCapacity})
		}
		w.start("one", w.secured())
		w.leads(time.Second, "one")
		w.apply(w.group("web", 5))
		w.pass(time.Hour)
		if n := len(w.list(w.keys.Of(store.KindTokens))); n > 5 {
			t.Errorf("%d tokens are kept after an hour without room", n)
		}
	})
}
