package program

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A command says itself what to do about an etcd that refuses: what the client advises is left out,
// so that no advice is given twice.
func TestAConnectionErrorHasNoAdvice(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = OpenEtcd(t.Context(), Connection{Endpoints: []string{closed}})
	if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), "connection refused") ||
		!strings.Contains(err.Error(), closed) {
		t.Errorf("it says %v", err)
	}
}
