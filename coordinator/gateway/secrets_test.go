package gateway_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/gateway"
	"github.com/leasehold/leasehold/store"
)

// keyring is keys that a test can change.
type keyring struct {
	mu   sync.Mutex
	ring encryption.Ring
}

func (k *keyring) Ring() encryption.Ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring
}

func (k *keyring) set(r encryption.Ring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ring = r
}

func (w *world) secret(ring encryption.Ring, shard, name, value string, version int) {
	w.t.Helper()
	s, err := ring.Seal(shard, store.Secret{Name: name, Version: version}, []byte(value))
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(w.keys.Secret(name), store.Encode(s))
	synctest.Wait()
}

// secret returns the secret that the agent received last; it fails if there was none since.
func (a *agent) secret(what string) *protocol.Secret {
	a.t.Helper()
	synctest.Wait()
	var w *protocol.Wanted
	for range len(a.in) {
		if msg := <-a.in; msg.GetWanted() != nil {
			a.told = append(a.told, msg.GetWanted())
		}
	}
	if len(a.told) > 0 {
		w = a.told[len(a.told)-1]
	}
	a.told = nil
	if len(w.GetSecrets()) != 1 || w.GetSecrets()[0].GetVariable() != "DB_PASSWORD" ||
		w.GetSecrets()[0].GetName() != "db" {
		a.t.Fatalf("%s: told %v, want one secret", what, w.GetSecrets())
	}
	return w.GetSecrets()[0]
}

func withDB(rec *store.Instance) { rec.Spec.Secrets = map[string]string{"DB_PASSWORD": "db"} }

// proves SEC-6
func TestSecretsAreSent(t *testing.T) {
	inSecuredWorld(t, func(w *world) {
		keys := &keyring{ring: encryption.Ring{}.With(encryption.NewKey())}
		r := w.serveWith("one", func(d *gateway.Deps) { d.Secrets = keys })
		defer r.stop()
		r.own = w.ca.agent("web-0", time.Hour)
		w.workloadRecord("web-0", withDB)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		expect := func(what, value, problem string) {
			t.Helper()
			if s := a.secret(what); string(s.GetValue()) != value || !strings.Contains(s.GetProblem(), problem) ||
				(problem == "") != (s.GetProblem() == "") {
				t.Errorf("%s: told %q, %q; want %q, %q", what, s.GetValue(), s.GetProblem(), value, problem)
			}
		}
		expect("before there is one", "", "leasehold secret set db")
		w.secret(keys.Ring(), shardID, "db", "hunter2", 1)
		expect("once it is there", "hunter2", "")
		w.secret(keys.Ring(), shardID, "db", "hunter3", 2)
		expect("another value", "hunter3", "")
		w.secret(keys.Ring(), shardID, "other", "x", 1)
		w.workloadRecord("web-0", withDB)
		synctest.Wait()
		a.reports()
		if len(a.told) > 0 {
			t.Errorf("told %v though nothing is new", len(a.told))
		}
		w.secret(keys.Ring(), "another shard", "db", "hunter4", 3)
		expect("of another shard", "", "does not fit")
		next := encryption.NewKey()
		w.secret(keys.Ring().With(next), shardID, "db", "hunter5", 4)
		expect("with a key that is not known here", "", "key is missing")
		keys.set(keys.Ring().With(next))
		r.SecretsChanged()
		expect("once the key is known", "hunter5", "")
		w.put(w.keys.Secret("db"), []byte(`{"schema":9}`))
		synctest.Wait()
		expect("of a newer schema", "", "cannot be read")
		w.remove(w.keys.Secret("db"))
		expect("once it is deleted", "", "there is no such secret")
		keys.set(encryption.Ring{})
		w.secret(encryption.Ring{}.With(next), shardID, "db", "hunter6", 1)
		expect("without keys", "", "no keys")
	})
}

// proves SEC-6
func TestNoSecretIsSentOverAStreamThatIsNotSecured(t *testing.T) {
	inWorld(t, func(w *world) {
		keys := &keyring{ring: encryption.Ring{}.With(encryption.NewKey())}
		w.secret(keys.Ring(), shardID, "db", "hunter2", 1)
		r := w.serveWith("one", func(d *gateway.Deps) { d.Secrets = keys })
		defer r.stop()
		w.workloadRecord("web-0", withDB)
		a := r.welcomed(hello("web-0", "boot1", 1))
		defer a.hangUp()
		if s := a.secret("over a stream that is open"); len(s.GetValue()) > 0 ||
			!strings.Contains(s.GetProblem(), "not secured") {
			t.Errorf("told %q, %q", s.GetValue(), s.GetProblem())
		}
	})
}
