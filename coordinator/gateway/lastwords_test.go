package gateway_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// The last output of a failed workload goes into the journal, where it outlives the instance: once
// for each end, and not after a success. A crash loop does not fill the journal.
//
// proves DET-19
func TestLastWordsAreKeptInTheJournal(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.serve("one")
		defer r.stop()
		w.record("web-0", store.Running)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		a.reports()
		ends := func(code int32, output string) {
			a.report(&protocol.Report{Healthy: code == 0, Why: "it ended", WorkloadExit: &protocol.WorkloadExit{
				Code: code, At: timestamppb.New(time.Now()), Output: []byte(output),
			}})
		}
		kept := func() (out []store.JournalEntry) {
			for _, e := range r.entries() {
				if e.Rule == "DET-19" {
					out = append(out, e)
				}
			}
			return out
		}
		ends(0, "all done")
		if n := len(kept()); n != 0 {
			w.t.Fatalf("%d entries about a workload that ended well", n)
		}
		pass(time.Second)
		ends(3, strings.Repeat("x", 70<<10)+"out of memory")

		first := kept()
		if len(first) != 1 || first[0].Instance != "web-0" || first[0].Workload == nil || first[0].Workload.Code != 3 {
			w.t.Fatalf("entries %+v", first)
		}
		if words := first[0].Workload.Output; !strings.HasSuffix(words, "out of memory") || len(words) > 64<<10 {
			w.t.Errorf("%d bytes of last words are kept", len(words))
		}
		for range 5 {
			pass(time.Second)
			ends(1, "again")
		}
		if n := len(kept()); n != 1 {
			w.t.Errorf("%d entries in five seconds of crashing", n)
		}
		pass(10 * time.Second)
		ends(1, "and again")
		if n := len(kept()); n != 2 {
			w.t.Errorf("%d entries after ten seconds more", n)
		}
	})
}
