package store_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// noon is a time that tests count from.
var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// The next leader counts from a time that was past for certain, whatever the clock of the last
// leader said.
//
// proves SAFE-13
func TestWhatWasPastWhenALeaderWasLastAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		served store.Served
		want   time.Time
	}{
		"a note of an older release": {store.Served{At: noon}, noon},
		"a clock that was ahead":     {store.Served{At: noon, Past: noon.Add(-time.Hour)}, noon.Add(-time.Hour)},
		"a clock that was right":     {store.Served{At: noon, Past: noon}, noon},
		"a note that is wrong":       {store.Served{At: noon, Past: noon.Add(time.Hour)}, noon},
	} {
		if got := c.served.KnownPast(); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The journal says what happened since the shard was created, or since etcd was exchanged.
func TestWhenTheJournalBegins(t *testing.T) {
	created := store.Shard{Created: noon}
	for since, want := range map[time.Time]time.Time{
		{}: noon, noon.Add(-time.Hour): noon, noon: noon, noon.Add(time.Hour): noon.Add(time.Hour),
	} {
		if got := (store.Served{Since: since}).Begins(created); !got.Equal(want) {
			t.Errorf("since %s: the journal begins at %s, want %s", since, got, want)
		}
	}
}

// A replica that is gone is shown for a day, unless another one has its address.
func TestReplicasThatWereSeen(t *testing.T) {
	hourAgo := noon.Add(-time.Hour)
	before := []store.SeenReplica{
		{ID: "forgotten", Address: "f:1", At: noon.Add(-store.SeenFor)},
		{ID: "gone", Address: "g:1", At: noon.Add(-store.SeenFor + 1)},
		{ID: "moved", Address: "m:1", At: hourAgo},
		{ID: "its place is taken", Address: "a:1", At: hourAgo},
		{ID: "without an address", At: hourAgo},
	}
	here := []store.Replica{{ID: "new without an address"}, {ID: "moved", Address: "m:2"}, {ID: "at a", Address: "a:1"}}
	want := []store.SeenReplica{
		{ID: "at a", Address: "a:1", At: noon},
		{ID: "gone", Address: "g:1", At: noon.Add(-store.SeenFor + 1)},
		{ID: "moved", Address: "m:2", At: noon},
		{ID: "new without an address", At: noon},
		{ID: "without an address", At: hourAgo},
	}
	if got := store.SeeReplicas(before, here, noon); !slices.Equal(got, want) {
		t.Errorf("seen are %+v, want %+v", got, want)
	}
}

// Ends of a part count together while less than a day lies between one and the next.
func TestEndsOfAPart(t *testing.T) {
	end := store.PartEnds{Part: "replica", Last: noon, Why: "killed"}
	first := noon.Add(-30 * time.Hour)
	before := func(part string, last time.Time) store.PartEnds {
		return store.PartEnds{Part: part, Times: 3, Since: first, Last: last, Why: "crashed"}
	}
	counted := func(times int, since time.Time) store.PartEnds {
		return store.PartEnds{Part: "replica", Times: times, Since: since, Last: noon, Why: "killed"}
	}
	member, server := before("member", noon.Add(-time.Hour)), before("server", noon.Add(time.Minute))
	for name, c := range map[string]struct{ before, want []store.PartEnds }{
		"the first": {nil, []store.PartEnds{counted(1, noon)}},
		"less than a day after the last one": {
			[]store.PartEnds{before("replica", noon.Add(-store.EndedFor+1))}, []store.PartEnds{counted(4, first)},
		},
		"a day after the last one": {
			[]store.PartEnds{before("replica", noon.Add(-store.EndedFor))}, []store.PartEnds{counted(1, noon)},
		},
		"the last one a minute ahead": {
			[]store.PartEnds{before("replica", noon.Add(time.Minute))}, []store.PartEnds{counted(4, first)},
		},
		"the clock was set back": {
			[]store.PartEnds{before("replica", noon.Add(time.Minute+1)), before("member", noon.Add(time.Minute+1))},
			[]store.PartEnds{counted(1, noon)},
		},
		"beside other parts": {[]store.PartEnds{server, member}, []store.PartEnds{member, counted(1, noon), server}},
		"another part, a day ago": {
			[]store.PartEnds{before("member", noon.Add(-store.EndedFor))}, []store.PartEnds{counted(1, noon)},
		},
	} {
		if got := store.EndedAgain(c.before, end); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
