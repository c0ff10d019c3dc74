package process

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/providertest"
)

// proves PROV-1
func TestContract(t *testing.T) {
	for _, mode := range []string{"plain", "parent", "daemon"} {
		t.Run(mode, func(t *testing.T) {
			p := open(t, t.TempDir(), mode)
			providertest.Run(t, "process", providertest.Harness{
				Open: func() (provider.Provider, error) { return p, nil },
				Kill: func(m provider.Machine) error {
					r := recordOf(t, p, m.Instance)
					return identity{r.PID, r.Start}.signal(syscall.SIGKILL)
				},
				Remains: func(m provider.Machine) string {
					if ids := marked(t, m.Shard, m.Instance); len(ids) > 0 {
						return fmt.Sprintf("processes %v", ids)
					}
					if exists(m.Ref) {
						return "directory " + m.Ref
					}
					return ""
				},
				Print: func(m provider.Machine, text string) error {
					f, err := os.OpenFile(p.LogPath(m.Instance), os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					defer f.Close()
					_, err = f.WriteString(text)
					return err
				},
			})
		})
	}
}
