package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// consoleTimeout bounds how long the removal of a dead machine waits for its console output.
const consoleTimeout = 3 * time.Second

// keepConsole writes the end of a dead machine's console output to the journal, where it outlives
// the machine, unless its agent reported how the workload ended (DET-19). Without an answer the
// removal goes on; if it has to be repeated, the output is asked for again.
func (t *term) keepConsole(ctx context.Context, p provider.Provider, rec store.Instance) {
	console, keeps := p.(provider.Console)
	if !keeps || !rec.Dead || t.exitReported(rec.ID) || t.consoleKept(rec.ID) {
		return
	}
	call, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	tail, err := console.Console(call, t.shard.ID, rec.ID)
	if err != nil {
		t.log.Debug("no console output of a dead machine", "group", rec.Group, "instance", rec.ID, "error", err)
		return
	}
	if tail = tail[max(0, len(tail)-provider.ConsoleTail):]; len(tail) == 0 {
		return
	}
	written := t.writeJournal(ctx, store.JournalEntry{
		Rule: "DET-19", What: "console output kept",
		Why: "its machine died, and its agent reported no end of the workload", Group: rec.Group,
		Instance: rec.ID, Slot: rec.Place(), Console: t.veiled(rec, string(bytes.ToValidUTF8(tail, []byte("?")))),
		Revision: rec.Last.Revision,
	})
	if written {
		t.mu.Lock()
		t.consoles[rec.ID] = true
		t.mu.Unlock()
	}
}

// veiled returns a machine's output without the present values of its secrets, in its environment
// and in files.
func (t *term) veiled(rec store.Instance, text string) string {
	if t.r.deps.Secrets == nil {
		return text
	}
	names := slices.Collect(maps.Values(rec.Spec.Secrets))
	for _, f := range rec.Spec.Files {
		if f.Secret != "" {
			names = append(names, f.Secret)
		}
	}
	values := map[string]string{}
	ring := t.r.deps.Secrets.Ring()
	t.r.cache.View(func(c *cache.Content) {
		for _, name := range names {
			if value, err := ring.Open(t.shard.ID, c.Secrets[name].Record); err == nil {
				values[name] = string(value)
			}
		}
	})
	return secrets.NewVeil(values)(text)
}

// secret returns the present value of a secret of the shard, for a provider.
func (r *Replica) secret(name string) (string, error) {
	if r.deps.Secrets == nil {
		return "", fmt.Errorf("secret %s: this replica has no key for secrets", name)
	}
	ring := r.deps.Secrets.Ring()
	var value []byte
	var err error
	r.cache.View(func(c *cache.Content) {
		v, there := c.Secrets[name]
		if !there {
			err = fmt.Errorf("there is no secret %s: set it with leasehold secret set %s", name, name)
			return
		}
		if value, err = ring.Open(c.Shard.Record.ID, v.Record); err != nil {
			err = fmt.Errorf("open secret %s: %w", name, err)
		}
	})
	return string(value), err
}

// consoleKept reports whether a machine's console output is in the journal.
func (t *term) consoleKept(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.consoles[id]
}

func (t *term) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.consoles, id)
}

// exitReported reports whether an instance's last report has the exit of its workload.
func (t *term) exitReported(id string) (reported bool) {
	t.r.cache.View(func(c *cache.Content) { reported = c.Reports[id].Record.Workload != nil })
	return reported
}
