package program

import (
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/ports"
)

// A command says itself what to do about an etcd that refuses: what the client advises is left out,
// so that no advice is given twice.
func TestAConnectionErrorHasNoAdvice(t *testing.T) {
	closed := ports.Between(1100, 2000).FreeAddress(t)
	_, _, err := OpenEtcd(t.Context(), Connection{Endpoints: []string{closed}})
	if !errors.Is(err, store.ErrUnavailable) || !strings.HasSuffix(err.Error(), "connection refused") ||
		!strings.Contains(err.Error(), closed) {
		t.Errorf("it says %v", err)
	}
}
