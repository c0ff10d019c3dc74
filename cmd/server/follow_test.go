package server

import (
	"context"
	"io"
	"os"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/store"
)

// A host whose certificates keep it from the cluster makes them again, although it cannot look who
// is in it.
//
// proves DAY-1
func TestAHostThatReachesNoOtherRenewsItsCertificates(t *testing.T) {
	p, r := first(t)
	lost, _ := p.credentials().Of(store.RoleRoot)
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- new(Command).follow(ctx, &services.Host{Stderr: io.Discard}, p, r) }()
	deadline, look := time.After(2*time.Minute), time.NewTicker(5*time.Millisecond)
	defer look.Stop()
	for made := false; !made; {
		select {
		case <-look.C:
			_, err := os.Stat(lost)
			made = err == nil
		case <-deadline:
			t.Fatal("the certificate was not made again")
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
