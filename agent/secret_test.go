package agent

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/secrets"
)

func withSecret(value, problem string, revision uint64) *protocol.Wanted {
	w := config("c2", "hi")
	w.Secrets = []*protocol.Secret{{
		Variable: "DB_PASSWORD", Name: "db", Value: []byte(value), Revision: revision,
		Problem: problem,
	}}
	return w
}

// An agent that lacks the values of secrets does not start its workload, says so, and starts it as
// soon as they arrive. Its state file has only names.
//
// proves SEC-6
func TestWorkloadIsStartedOnceItsSecretsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newShard(t, "a"), newMachine(true)
		m.hidden = secrets.New()
		r := startAgent(t, s, m, func(c *Config) {
			withOld(c)
			c.Bootstrap.Secrets = map[string]string{"DB_PASSWORD": "db"}
		})
		defer r.end()
		pass(time.Millisecond)
		if got := r.tells("at first"); got.GetHealthy() ||
			!strings.Contains(got.GetWhy(), "waits for its secrets: no coordinator has sent") {
			t.Errorf("at first it says %v, %q", got.GetHealthy(), got.GetWhy())
		}
		r.want(withSecret("", "there is none", 0), 2)
		if got := r.tells("without the secret"); got.GetHealthy() ||
			!strings.Contains(got.GetWhy(), "secret db (DB_PASSWORD): there is none") {
			t.Errorf("without the secret it says %v, %q", got.GetHealthy(), got.GetWhy())
		}
		r.want(withSecret("hunter2", "", 7), 2)
		pass(time.Second)
		if got := r.tells("with the secret"); !got.GetHealthy() {
			t.Errorf("with the secret it says %q", got.GetWhy())
		}
		r.machine.came(t, "with the secret", 1, 0, updated)
		r.want(withSecret("hunter3", "", 9), 2)
		pass(2 * interval)
		r.machine.came(t, "with another value", 1, 0, updated)
		data, err := os.ReadFile(r.state)
		if err != nil || strings.Contains(string(data), "hunter") ||
			!strings.Contains(string(data), `"DB_PASSWORD":"db"`) {
			t.Errorf("state file is %s, %v", data, err)
		}
	})
}
