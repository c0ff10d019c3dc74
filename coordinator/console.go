package coordinator

import (
	"bytes"
	"context"
	"time"

	"github.com/leasehold/leasehold/agent/secrets"
	"github.com/leasehold/leasehold/coordinator/picture"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// consoleTimeout is how long a provider may take to show a dead machine's console before the machine is removed all the same.
const consoleTimeout = 3 * time.Second

// keepConsole puts the end of a dead machine's console output into the journal, where it outlives the machine, unless its agent has
// told how the workload ended (DET-19). It is asked for once, and what does not come is done without.
func (q *queue) keepConsole(ctx context.Context, rec store.Instance) {
	console, keeps := q.provider.(provider.Console)
	if !keeps || rec.Last.Rule != "DET-4" || q.t.told(rec.ID) || !q.first(rec.ID) {
		return
	}
	call, cancel := context.WithTimeout(ctx, consoleTimeout)
	defer cancel()
	tail, err := console.Console(call, q.t.shard.ID, rec.ID)
	if err != nil {
		q.t.log.Debug("no console output of a dead machine", "group", rec.Group, "instance", rec.ID, "error", err)
		return
	}
	if tail = tail[max(0, len(tail)-provider.ConsoleTail):]; len(tail) == 0 {
		return
	}
	q.t.tell(call, store.JournalEntry{
		Rule: "DET-19", What: "console output kept", Why: "its machine died, and its agent told of no end of the workload", Group: rec.Group,
		Instance: rec.ID, Slot: rec.Place(), Console: q.t.veiled(rec, string(bytes.ToValidUTF8(tail, []byte("?")))), Revision: rec.Last.Revision,
	})
}

// veiled is a machine's output without the values of its secrets, as they are now.
func (t *term) veiled(rec store.Instance, text string) string {
	if len(rec.Spec.Secrets) == 0 || t.r.deps.Secrets == nil {
		return text
	}
	values := map[string]string{}
	ring := t.r.deps.Secrets.Ring()
	t.r.picture.View(func(c *picture.Content) {
		for _, name := range rec.Spec.Secrets {
			if value, err := ring.Open(t.shard.ID, c.Secrets[name].Record); err == nil {
				values[name] = string(value)
			}
		}
	})
	return secrets.NewVeil(values)(text)
}

// first says whether a machine's console was not asked for yet.
func (q *queue) first(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := !q.heard[id]
	q.heard[id] = true
	return first
}

func (q *queue) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.heard, id)
}

// told says whether the last report of an instance tells how its workload ended.
func (t *term) told(id string) (told bool) {
	t.r.picture.View(func(c *picture.Content) { told = c.Reports[id].Record.Workload != nil })
	return told
}
