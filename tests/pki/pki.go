package pki

import (
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/coordinator/authority"
)

// Env is the variable that tells programs where the authorities are.
const Env = "LEASEHOLD_PKI"

// Make makes both authorities below a directory, as an operator does, and says where they are.
func Make(dir string) (string, error) {
	place := filepath.Join(dir, "pki")
	return place, authority.Init(place, map[authority.Kind]time.Duration{
		authority.Agents: authority.AgentsLifetime, authority.Operators: authority.OperatorsLifetime,
	})
}
