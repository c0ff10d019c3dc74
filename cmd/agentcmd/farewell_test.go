package agentcmd

import (
	"log/slog"
	"testing"

	"github.com/leasehold/leasehold/agent"
)

// Units of machines have both settings. An operator who overrules the goodbye alone gets an agent
// that ends its workload, not one that refuses to start.
//
// proves DET-8
func TestFarewellDecidesWhetherTheWorkloadIsKept(t *testing.T) {
	for _, c := range []struct {
		farewell   string
		keep, kept bool
		want       agent.Farewell
	}{
		{"", false, false, agent.FarewellShutdown},
		{"", true, false, agent.FarewellShutdown},
		{"shutdown", true, false, agent.FarewellShutdown},
		{"restart", true, true, agent.FarewellRestart},
		{"restart", false, false, agent.FarewellRestart},
	} {
		cmd := Cmd{Farewell: c.farewell, KeepWorkload: c.keep}
		if got := cmd.farewell(slog.New(slog.DiscardHandler)); got != c.want || cmd.KeepWorkload != c.kept {
			t.Errorf("%+v: %s, workload kept: %t", c, got, cmd.KeepWorkload)
		}
	}
}
