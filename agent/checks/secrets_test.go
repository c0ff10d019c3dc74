package checks

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/agent/workload"
)

// A command that prints a secret does not give it away, and none is run without the secrets that it
// should have.
//
// proves SEC-6
func TestExecAndSecrets(t *testing.T) {
	hidden := secrets.New()
	hidden.Want(map[string]string{"DB_PASSWORD": "db"})
	r, err := New(Config{Place: workload.Config{Dir: t.TempDir(), Secrets: hidden}},
		Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	spec := &protocol.CheckSpec{
		Name: "says", Interval: durationpb.New(10 * time.Millisecond), Timeout: durationpb.New(30 * time.Second),
		UnhealthyThreshold: 1, HealthyThreshold: 1,
		Kind: &protocol.CheckSpec_Exec{Exec: &protocol.ExecCheck{Run: []string{
			"sh", "-c",
			"echo refused: $DB_PASSWORD; exit 1",
		}}},
	}
	w := Wanted{
		Specs: []*protocol.CheckSpec{spec},
		Known: map[string]Verdict{"says": {Healthy: true, Since: time.Now()}},
	}
	r.Want(w)
	select {
	case <-r.Changed():
		t.Fatalf("it was run without its secrets: %+v", r.States())
	case <-time.After(200 * time.Millisecond):
	}
	if s := r.States(); len(s) != 1 || !s[0].Healthy {
		t.Errorf("meanwhile its verdict is %+v, want the known one", s)
	}
	hidden.Tell([]secrets.Received{{Variable: "DB_PASSWORD", Name: "db", Value: []byte("hunter2"), Revision: 1}})
	w.Known = nil
	r.Want(w)
	select {
	case <-r.Changed():
	case <-time.After(2 * time.Minute):
		t.Fatal("it is not run though its secrets are known")
	}
	if s := r.States()[0]; s.Healthy || !strings.Contains(s.Why, "refused: [secret db]") ||
		strings.Contains(s.Why, "hunter2") {
		t.Errorf("it says %+v", s)
	}
}
