//go:build !race

package ec2

import "testing"

// The same as TestMachinesWithFaults, with ten times as many machines. The race detector would take
// a minute for it, and sees no other code.
//
// proves SAFE-8, PROV-4, PROV-5
func TestAThousandMachinesWithFaults(t *testing.T) { withFaults(t, 1000) }
