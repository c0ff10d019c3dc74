package etcdstore

import (
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestContract(t *testing.T) {
	server := startEtcd(t, t.TempDir(), "127.0.0.1:0")
	storetest.Run(t, func(t *testing.T) store.Store {
		return openStore(t, Config{Endpoints: []string{server.Endpoint()}})
	})
}
