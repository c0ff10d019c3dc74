package planning

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store/memstore"
)

// A small shard shows what a large one does: nothing is left to do once it is planned, each kind of
// change but the first is decided on, and a storm replaces nothing.
func TestRun(t *testing.T) {
	cfg := Config{Size: Size{Instances: 250, Groups: 10}, Changes: 5, Lost: 100}
	r, err := Run(t.Context(), cfg, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if want := 1 + 10*2 + 250*5; r.Keys != want {
		t.Errorf("%d keys, want %d", r.Keys, want)
	}
	if r.Wrote != 0 || r.Steps == 0 {
		t.Errorf("the first plan took %d steps and wrote %d keys, of a shard that a leader has left settled", r.Steps,
			r.Wrote)
	}
	for i, c := range r.Changes {
		if c.Changes != cfg.Changes || c.Spread.P50 == 0 || c.Each.Bytes == 0 || i == 0 && c.Decided != 0 || i > 0 &&
			c.Decided < c.Changes {
			t.Errorf("%+v", c)
		}
	}
	if s := r.Storm; s == nil || s.Lost != 100 || s.Groups != 4 || s.Replaced != 0 || s.Left != 0 {
		t.Errorf("storm: %+v", s)
	}
}

func TestColdStart(t *testing.T) {
	db := memstore.New(memstore.Config{})
	defer db.Close()
	size := Size{Instances: 130, Groups: 3}
	c, err := StartCold(t.Context(), db.Connect(), size, 6,
		func() (time.Duration, error) { return 0, errors.New("it has no process") }, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", c)
	if want := 1 + 3*2 + 130*5; c.Records != want {
		t.Errorf("%d records, want %d", c.Records, want)
	}
	if c.Listed == 0 || c.First < c.Listed || c.All < c.First || c.Changed != 6 || c.Changes.P50 == 0 {
		t.Errorf("%+v", c)
	}
	l, err := db.Connect().List(t.Context(), keys.Prefix(), 0)
	if err != nil || len(l.KVs) != c.Records {
		t.Errorf("the store holds %d records: %v", len(l.KVs), err)
	}
}
