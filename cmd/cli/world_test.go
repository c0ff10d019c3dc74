package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/providerfile"
	"github.com/leasehold/leasehold/cmd/rights"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/exec"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memstore"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of everything in these tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kinds are the kinds that a file of providers may name here: few, because each cloud is large to
// link.
var kinds = providerfile.Kinds{Providers: map[string]providerfile.OpenProvider{
	"exec": func(ctx context.Context, settings []byte, log *slog.Logger) (provider.Provider, error) {
		c := exec.Config{Logger: log}
		if err := providerfile.Decode(settings, &c); err != nil {
			return nil, err
		}
		return exec.New(ctx, c)
	},
}}

// world is a store in memory and an operator before it.
type world struct {
	t        *testing.T
	db       *memstore.Database
	st       store.Store
	keys     store.Keys
	now      func() time.Time
	terminal bool
	stdin    io.Reader
	edit     func(path string) error
	typed    []string                                                             // at the terminal, for secrets
	typing   func()                                                               // what happens meanwhile
	keysText string                                                               // from the environment
	open     func(context.Context, Connection) (store.Store, func() error, error) // nil: st opens
	orders   int
	limit    time.Duration // of a request without --timeout; 0: as for operators
}

func newWorld(t *testing.T) *world {
	db := memstore.New(memstore.Config{})
	t.Cleanup(db.Close)
	w := &world{
		t: t, db: db, st: db.Connect(), keys: store.KeysOf("default"), now: func() time.Time { return noon },
		stdin: strings.NewReader(""),
		edit:  func(string) error { return errors.New("there is no editor here") },
		limit: 5 * time.Minute, // tests beside this one may hold up a request
	}
	return w
}

func (w *world) env(out, err io.Writer) Env {
	open := w.open
	if open == nil {
		open = func(context.Context, Connection) (store.Store, func() error, error) {
			return w.st, func() error { return nil }, nil
		}
	}
	return Env{
		Stdin: w.stdin, Stdout: out, Stderr: err, StdinTerminal: w.terminal, StdoutTerminal: w.terminal,
		StderrTerminal: w.terminal,
		Now:            w.now, RandomID: func() string { w.orders++; return fmt.Sprintf("order%d", w.orders) },
		RequestTimeout: w.limit,
		User:           "eve@desk",
		Version:        "v0",
		Adapters:       services.Adapters{Kinds: kinds},
		Open:           open, Rights: func(context.Context, Connection) (rights.Etcd, func() error, error) {
			return nil, nil, errors.New("there are no rights in memory")
		},
		Edit:       func(_ context.Context, path string) error { return w.edit(path) },
		SecretsKey: w.keysText,
		Ask: func(_ context.Context, prompt string) ([]byte, error) {
			fmt.Fprintln(err, prompt)
			if len(w.typed) == 0 {
				return nil, errors.New("no input")
			}
			value := w.typed[0]
			if w.typed = w.typed[1:]; w.typing != nil {
				w.typing()
			}
			return []byte(value), nil
		},
	}
}

// run runs a command as a shell would.
func (w *world) run(args ...string) (code Code, stdout, stderr string) {
	w.t.Helper()
	return w.runCtx(w.t.Context(), args...)
}

func (w *world) runCtx(ctx context.Context, args ...string) (code Code, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Run(ctx, w.env(&out, &err), args)
	return code, out.String(), err.String()
}

// put writes records, each under its key below the shard.
func (w *world) put(kind, name string, record any) store.Revision {
	w.t.Helper()
	key := strings.TrimSuffix(w.keys.Of(kind)+name, "/")
	value, raw := record.(string)
	if !raw {
		value = string(store.Encode(record))
	}
	rev, err := w.st.Commit(w.t.Context(), store.Txn{Writes: []store.Write{store.Put(key, []byte(value))}})
	if err != nil {
		w.t.Fatalf("put %s: %v", key, err)
	}
	return rev
}

func (w *world) spec(name string) store.Group {
	w.t.Helper()
	kv, err := w.st.Get(w.t.Context(), w.keys.Group(name))
	if err != nil {
		w.t.Fatalf("get group %s: %v", name, err)
	}
	g, err := store.ReadGroup(kv.Value)
	if err != nil {
		w.t.Fatalf("read group %s: %v", name, err)
	}
	return g
}

func webGroup(size int) store.Group {
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", "process", size
	g.Workload.Run = []string{"./web"}
	g.Complete()
	return g
}

func instanceOf(g store.Group, slot int, id string, phase store.Phase) store.Instance {
	return store.Instance{
		Schema: store.Schema, ID: id, Group: g.Name, Slot: slot, Phase: phase, Managed: true,
		Since: noon.Add(-3 * time.Minute), Created: noon.Add(-time.Hour),
		Template: g.InstanceSpec().TemplateHash(), Spec: g.InstanceSpec(), Zone: "a",
		Last: store.Decision{
			Rule: "REC-3", What: "requested", Why: "slot was empty", Revision: 7,
			At: noon.Add(-time.Hour),
		},
	}
}

func statusOf(g store.Group, at store.Revision, running int) store.Status {
	return store.Status{
		Schema: store.Schema, Group: g.Name, Accepted: &g, AcceptedRevision: at, State: store.GroupStarted,
		Health: 100 * running / g.Size, Healthy: running, OK: running >= g.Size,
		Since: noon.Add(-3 * time.Minute), Phases: map[store.Phase]int{store.Running: running},
		Verdicts: map[store.Verdict]int{store.Live: running},
	}
}

// serve puts a coordinator at work.
func (w *world) serve() {
	w.put(store.KindShard, "", store.Shard{
		Schema: store.Schema, ID: "x1", Name: "default",
		Created: noon.Add(-time.Hour), Settings: store.DefaultShardSettings(),
	})
	w.put(store.KindServed, "", store.Served{Schema: store.Schema, At: noon.Add(-2 * time.Second), Replica: "coord-a"})
	w.put(store.KindLeader, "1a", store.Leader{
		Schema: store.Schema, Replica: "coord-a",
		Since: noon.Add(-134 * time.Minute),
	})
	w.put(store.KindLeader, "1b", store.Leader{
		Schema: store.Schema, Replica: "coord-b",
		Since: noon.Add(-3 * time.Minute),
	})
	w.put(store.KindReplicas, "coord-a",
		store.Replica{
			Schema: store.Schema, ID: "coord-a", Address: "127.0.0.1:7400", Version: "v0",
			Providers: []string{"process"}, Since: noon.Add(-134 * time.Minute),
		})
	w.put(store.KindReplicas, "coord-b",
		store.Replica{
			Schema: store.Schema, ID: "coord-b", Address: "127.0.0.1:7401", Version: "v0",
			Providers: []string{"process"}, Since: noon.Add(-3 * time.Minute),
		})
}

// journal writes an entry of so long ago.
func (w *world) journal(ago time.Duration, e store.JournalEntry) {
	e.Schema, e.By, e.At = store.Schema, "coord-a", noon.Add(-ago)
	w.put(store.KindEvents, strings.TrimPrefix(w.keys.Event(e.At, e.Instance+"x"), w.keys.Of(store.KindEvents)), e)
}
