package view_test

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The report begins when etcd was restored: what was before is unknown.
//
// proves DAY-5
func TestTheReportBeginsAtARestore(t *testing.T) {
	inShard(t, func(x *shown) {
		now := x.now.Add(time.Hour)
		if r, read := x.views.Report("", 2*time.Hour, now); !read || !r.From.Equal(now.Add(-2*time.Hour)) {
			t.Fatalf("%t, %+v", read, r)
		}
		since := now.Add(-30 * time.Minute)
		x.put(x.keys.Served(), store.Served{Schema: store.Schema, At: now, Replica: "one", Since: since})
		if r, _ := x.views.Report("", 2*time.Hour, now); !r.From.Equal(since) {
			t.Errorf("%+v", r)
		}
	})
}
