package process

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
)

func TestContract(t *testing.T) {
	for _, mode := range []string{"plain", "parent", "daemon"} {
		t.Run(mode, func(t *testing.T) {
			providertest.Run(t, providertest.Harness{
				Open: func(t *testing.T) provider.Provider { return open(t, t.TempDir(), mode) },
				Kill: func(t *testing.T, p provider.Provider, m provider.Machine) {
					r := recordOf(t, p.(*Provider), m.Instance)
					if err := (identity{r.PID, r.Start}).signal(syscall.SIGKILL); err != nil {
						t.Error(err)
					}
				},
				Remains: func(p provider.Provider, m provider.Machine) string {
					if ids := marked(t, m.Shard, m.Instance); len(ids) > 0 {
						return fmt.Sprintf("processes %v", ids)
					}
					if exists(m.Ref) {
						return "directory " + m.Ref
					}
					return ""
				},
				Print: func(t *testing.T, p provider.Provider, m provider.Machine, text string) {
					f, err := os.OpenFile(p.(*Provider).LogPath(m.Instance), os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					if _, err := f.WriteString(text); err != nil {
						t.Error(err)
					}
				},
				Remembers: true,
			})
		})
	}
}
