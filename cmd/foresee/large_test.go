package foresee_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/foresee"
	"github.com/leasehold/leasehold/store"
)

// A course that is too long to be followed to its end is counted nevertheless, and takes no less
// time than the shard's create_rate allows.
func TestAheadOfLargeChanges(t *testing.T) {
	large := func(g *store.Group) { g.Template.InstanceType = "large" }
	for name, test := range map[string]struct {
		from      int
		edit      func(*store.Group)
		words     string
		took      time.Duration
		estimated bool
	}{
		"3 to 500": {
			3, func(g *store.Group) { g.Size = 500 }, "create 497; never below 3 healthy",
			78 * time.Second, false,
		},
		"3 to 7,000": {
			3, func(g *store.Group) { g.Size = 7000 }, "create 6997; never below 3 healthy",
			728 * time.Second, true,
		},
		"3 to 100,000": {
			3, func(g *store.Group) { g.Size = 100_000 }, "create 99997; never below 3 healthy",
			10_028 * time.Second, true,
		},
		"3 to 3,000 by tens": {
			3, func(g *store.Group) { g.Size, g.Budget.MaxCreating = 3000, 10 },
			"create 2997; never below 3 healthy", 9000 * time.Second, true,
		},
		"5,000 to 3": {
			5000, func(g *store.Group) { g.Size = 3 }, "remove 4997; never below 3 healthy", 0,
			true,
		},
		"5,000 are stopped": {
			5000, func(g *store.Group) { g.Stopped = true }, "remove 5000; never below 0 healthy",
			0, true,
		},
		"5,000 to a new image": {
			5000, large, "recreate 5000 one at a time; never below 5000 healthy",
			150_000 * time.Second, true,
		},
		"restart, and grow": {3, func(g *store.Group) {
			g.Size, g.Vars = 4000, map[string]string{"port": "81", "greeting": "hello"}
		}, "create 3997, restart 3 one at a time; never below 2 healthy", 428 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := group(test.from)
			w := foresee.New(keys, "web", records(g, nil), edit(g, test.edit), noon)
			pace, _ := w.StartTime()
			c := w.Ahead(pace)
			if c.Words() != test.words || c.Estimated != test.estimated || !c.Rests {
				t.Errorf("%q, want %q: %+v", c.Words(), test.words, c)
			}
			if c.Took < test.took*9/10 || c.Took > test.took*11/10+20*time.Second {
				t.Errorf("took %s, want about %s", c.Took, test.took)
			}
		})
	}
}
