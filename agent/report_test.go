package agent

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/agent/host"
)

// proves AUTO-2
func TestAReportSaysWhatWasIdle(t *testing.T) {
	for name, test := range map[string]struct {
		window       host.Window
		cpu, network bool
	}{
		"not measured": {host.Window{}, false, false},
		"idle":         {host.Window{CPUMeasured: true, NetworkMeasured: true}, true, true},
		"at work": {
			host.Window{CPUMeasured: true, NetworkMeasured: true, CPUPercent: 1, NetworkReceived: 1}, false, false,
		},
	} {
		test.window.Covered = time.Minute
		all := windows(host.Sample{Windows: [3]host.Window{test.window}})
		if len(all) != 1 || all[0].GetCpuIdle() != test.cpu || all[0].GetNetworkIdle() != test.network {
			t.Errorf("%s: %v", name, all)
		}
	}
}
