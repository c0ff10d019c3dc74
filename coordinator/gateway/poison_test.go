package gateway_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/store"
)

// poison supplies gRPC's buffers. It overwrites a returned buffer at once, as the buffer's next
// owner would sooner or later, so that anything that still refers to it shows.
type poison struct {
	mu     sync.Mutex
	marked int // buffers that had a mark of the test's
}

const (
	mark     = "kept as it came"
	poisoned = '#'
)

func (*poison) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

func (p *poison) Put(b *[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := (*b)[:cap(*b)]
	if bytes.Contains(whole, []byte(mark)) {
		p.marked++
	}
	for i := range whole {
		whole[i] = poisoned
	}
}

// taken returns how many buffers with a mark were given back since it was asked last.
func (p *poison) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.marked
	p.marked = 0
	return n
}

// Nothing that the gateway keeps, writes or sends refers to a buffer that gRPC reuses, nor to a
// record that it reuses itself.
//
// proves SEC-5
func TestNothingThatIsKeptIsOverwritten(t *testing.T) {
	before := mem.DefaultBufferPool()
	experimental.SetDefaultBufferPool(&poison{}) // of codecs, and of the agents here; servers have an option for theirs
	defer experimental.SetDefaultBufferPool(before)
	pool := &poison{}
	inWorld(t, func(w *world) {
		w.extra = append(w.extra, experimental.BufferPool(pool))
		r := w.serve("one")
		defer r.stop()
		for _, id := range []string{"web-0", "web-1"} {
			w.record(id, store.Running)
		}
		h := hello("web-0", "boot "+mark, 1)
		h.AgentVersion = mark
		h.ProtoReflect().SetUnknown(padding()) // gRPC keeps no small buffers
		a := r.welcomed(h)
		defer a.hangUp()
		if pool.taken() == 0 {
			t.Fatal("the hello's buffer was not given back: gRPC does not use the test's pool")
		}
		other := r.welcomed(hello("web-1", "boot1", 1))
		defer other.hangUp()
		other.reports()

		for _, parts := range []int{2, 60} { // of a kibibyte each: in one frame of HTTP, and in several
			r.writesAreAnswered(false)
			a.report(&protocol.Report{Why: "it is being written until that is given up, so that the next one waits"})
			a.report(marked(parts))
			if pool.taken() == 0 {
				t.Fatal("the report's buffer was not given back")
			}
			for i := range 8 { // which say nothing new, so that their buffers are used again
				other.report(&protocol.Report{Healthy: true, Why: strings.Repeat("@", 400+i)})
			}
			r.writesAreAnswered(true)
			pass(interval)
			want := marked(parts)
			rec := w.report("web-0").Record
			if rec.Sequence != a.number || rec.BootID != h.GetBootId() || rec.Agent != mark {
				t.Errorf("report %d of %q, agent %q, is written last; want %d of %q, %q", rec.Sequence, rec.BootID,
					rec.Agent, a.number, h.GetBootId(), mark)
			}
			if rec.Why != want.GetWhy() || rec.Config != mark || rec.Trust != mark || rec.Drained != mark ||
				rec.Restarted != mark || len(rec.Checks) != parts {
				t.Errorf("%d checks are written, want %d, with %q, %q, %q, %q, %q", len(rec.Checks), parts, rec.Why,
					rec.Config, rec.Trust, rec.Drained, rec.Restarted)
			}
			for i, c := range rec.Checks {
				if w := want.GetChecks()[i]; c.Name != w.GetName() || c.Kind != mark || c.Why != w.GetWhy() {
					t.Errorf("check %d is written as %q of kind %q: %.40q", i, c.Name, c.Kind, c.Why)
				}
			}
			if rec.Workload == nil || rec.Workload.Output != string(want.GetWorkloadExit().GetOutput()) ||
				rec.Notice == nil || rec.Notice.Why != mark || rec.Certificate.Issuer != mark {
				t.Errorf("workload %+v, notice %+v, certificate %+v", rec.Workload, rec.Notice, rec.Certificate)
			}
		}
		a.number++
		a.send(
			&protocol.AgentMessage{
				Kind: &protocol.AgentMessage_Goodbye{Goodbye: &protocol.Goodbye{Kind: protocol.Goodbye_SHUTDOWN}},
			},
		)
		pass(time.Second)
		if alive := w.alive("web-0").Record; alive.BootID != h.GetBootId() || alive.Agent != mark ||
			alive.State != store.StreamLeft {
			t.Errorf("alive is %+v", alive)
		}
		told := 0
		for _, e := range r.entries() {
			if strings.ContainsRune(fmt.Sprintf("%+v %+v", e, e.Workload), poisoned) {
				t.Errorf("the journal has %+v", e)
			}
			if e.Workload != nil && strings.HasPrefix(e.Workload.Output, mark) {
				told++
			}
		}
		if told == 0 {
			t.Error("the journal has not the workload's last words")
		}
	})
}

// padding returns an unknown field, and makes a message large enough for a buffer that is used
// again.
func padding() []byte {
	const nobodys = 1000
	return protowire.AppendBytes(protowire.AppendTag(nil, nobodys, protowire.BytesType),
		bytes.Repeat([]byte("."), 4<<10))
}

// marked returns a report that says something in every field, and so much in its checks.
func marked(checks int) *protocol.Report {
	r := &protocol.Report{
		Healthy: false, Why: fmt.Sprintf("%s, with %d checks", mark, checks), ConfigHash: mark, Restarted: mark,
		Drained: mark, Trust: mark,
		Certificate: &protocol.OwnCertificate{Issuer: mark},
		WorkloadExit: &protocol.WorkloadExit{
			Code: 1, Signal: mark,
			Output: []byte(mark + strings.Repeat("~", 2000+checks)),
		},
		Notice: &protocol.Notice{Kind: mark, Why: mark},
	}
	for i := range checks {
		r.Checks = append(r.Checks, &protocol.Check{
			Name: fmt.Sprintf("%s %d", mark, i), Kind: mark,
			Why: fmt.Sprintf("%s %d %s", mark, i, strings.Repeat("-", 900)),
		})
	}
	return r
}
