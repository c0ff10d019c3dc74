package attack

import "testing"

// Everything is tried against one shard, one after the other, while its honest agents report. What
// one try leaves behind is there for the next. In between certificates last for seconds, and the
// authority is exchanged. At the end a replica is killed, so that half of the agents have to come
// back with the certificates that they have got by then.
//
// proves SEC-1, SEC-2, SEC-3, SEC-5
func TestShardUnderAttack(t *testing.T) {
	s := besiege(t, *honest)
	before := s.Settle()
	for _, part := range []struct {
		name string
		lay  func(*testing.T, *siege)
	}{
		{"identities", identities},
		{"certificates of seconds", shortLived},
		{"another authority", exchanged},
		{"joins", joins},
		{"excesses", excesses},
		{"floods, all at once", floods},
		{"files", files},
	} {
		s.within(t, part.name, func(t *testing.T) { part.lay(t, s) })
	}
	s.Replicas["a"].Kill()
	s.Await("all agents at the other replica", func() bool { return s.Open() == *honest && len(s.Serving()["a"]) == 0 })
	s.AwaitCalm()
	s.honestUntouched(t, before)
	s.Sees("web") // attacked agents still work, and new machines join under the new authority
}
