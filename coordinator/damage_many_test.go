//go:build !race

// The race detector would make these many times slower, and sees the same code in other tests.

package coordinator_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// More records of a group are lost than its status lists: all are counted, also by a new leader,
// and those that the list leaves out are listed once others are back.
//
// proves SAFE-15
func TestMoreDamageThanAStatusLists(t *testing.T) {
	const size, lost, listed = 210, 205, 200
	inWorld(t, quick, func(w *world) {
		w.editShard(func(s *store.Shard) { s.Settings.CreateRate, s.Settings.CreateBurst = 1000, 1000 })
		one := w.start("one")
		w.apply(w.group("web", size))
		ids := w.up(size)
		w.pass(time.Minute)
		was := append(w.lose(ids[:100]...), w.lose(ids[100:lost]...)...)
		all := func() bool {
			h := w.hold()
			return h != nil && h.Damage == lost && len(w.damaged("web")) == listed
		}
		w.until(5*time.Second, "all are counted", all)
		one.stop()
		w.start("two") // which has seen none of it
		w.always(10*time.Minute, "all stay counted, and nothing is made",
			func() bool { return all() && w.made() == size })
		w.restore(was[:listed])
		w.until(time.Minute, "the others are listed", func() bool { return len(w.damaged("web")) == lost-listed })
		w.restore(was[listed:])
		w.until(time.Minute, "there is no damage any more", func() bool { return len(w.damaged("web")) == 0 })
		w.editShard(func(s *store.Shard) { s.Release(time.Now().UTC()) })
		w.always(time.Minute, "nothing is made, or held", func() bool { return w.made() == size && w.hold() == nil })
	})
}
