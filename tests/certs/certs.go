package certs

import (
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
)

// Env is the variable that tells programs where the authorities are.
const Env = "LEASEHOLD_PKI"

// Make creates both authorities below a directory, as an operator does, and returns the directory.
func Make(dir string) (string, error) {
	place := filepath.Join(dir, "pki")
	return place, pki.Init(place, map[pki.Kind]time.Duration{
		pki.Agents: pki.AgentsLifetime, pki.Operators: pki.OperatorsLifetime,
	})
}
