package judge

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults/history"
)

func TestTheLeaseOfOneThatIsNotHeardEnds(t *testing.T) {
	cut := func(during func(*story)) *story {
		s := web(t)
		s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "cut"}})
		s.harm(one, history.Cut)
		s.pass(8 * time.Second)
		during(s)
		s.pass(time.Minute)
		s.over(one, history.Cut)
		s.add(history.Event{Trouble: &history.Trouble{ID: 1, Kind: "cut", Ends: true}})
		return s
	}
	cut(func(*story) {}).broken("DET-2")
	cut(func(s *story) { s.silent(one) }).innocent()
	cut(func(s *story) { s.add(history.Event{Trouble: &history.Trouble{ID: 2, Kind: "etcd restarted"}}) }).innocent()
}
