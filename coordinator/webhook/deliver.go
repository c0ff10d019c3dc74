package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

const (
	giveUpAfter = time.Hour
	retryFirst  = time.Second
	maxRetry    = time.Minute
	saveEvery   = 5 * time.Second
	// idleEvery is how often the position in the journal is recorded while nothing is sent, so that
	// a new leader reads little.
	idleEvery      = 10 * time.Minute
	maxDeadLetters = 20
	partSize       = 1_000 // entries that one request reads
)

// errLater ends a watch: etcd would keep all further changes in memory while an event is tried
// again.
var errLater = errors.New("an event is tried again")

// Deliverer sends the decisions of a shard to webhooks, while its replica leads.
type Deliverer struct {
	Store store.Store
	Keys  store.Keys
	Shard Shard
	Hooks []*Hook
	Log   *slog.Logger
	// Commit writes while the replica leads, and fails once it does not.
	Commit func(ctx context.Context, writes []store.Write) error
}

// Run delivers until ctx ends.
func (d *Deliverer) Run(ctx context.Context) {
	var hooks sync.WaitGroup
	for _, h := range d.Hooks {
		hooks.Go(func() {
			(&delivery{
				Deliverer: d, hook: h, log: d.Log.With("webhook", h.name), done: map[string]struct{}{},
			}).run(ctx)
		})
	}
	hooks.Wait()
}

// delivery is the state of the deliveries to one webhook.
type delivery struct {
	*Deliverer
	hook   *Hook
	log    *slog.Logger
	record store.Webhook
	saved  time.Time
	noted  time.Time // when the position in the journal was last recorded
	dirty  bool      // the record in etcd is outdated

	later store.KV            // the entry that is being retried
	done  map[string]struct{} // finished entries of the present commit, by key
	tried time.Time           // when the event under retry last failed in this term
}

// entry is a journal entry that passes the webhook's filters.
type entry struct {
	key      string
	revision store.Revision
}

func (d *delivery) run(ctx context.Context) {
	d.noted = time.Now()
	pause := retryFirst
	again := func(err error) bool {
		if ctx.Err() == nil {
			d.log.Debug("webhook waits for etcd", "error", err)
		}
		ok := wait(ctx, pause)
		pause = min(2*pause, maxRetry)
		return ok
	}
	for {
		err := d.load(ctx)
		if err == nil {
			break
		}
		if errors.Is(err, store.ErrSchema) {
			d.log.Error("webhook is not used: a newer release keeps its record", "error", err)
			return
		}
		if !again(err) {
			return
		}
	}
	for ctx.Err() == nil {
		switch err := d.follow(ctx); {
		case err == nil, errors.Is(err, errLater):
			pause = retryFirst
		case !again(err):
			return
		}
	}
}

// load reads up to which entry the previous leaders have delivered. A new webhook begins with later
// entries.
func (d *delivery) load(ctx context.Context) error {
	kv, missing := d.Store.Get(ctx, d.Keys.Webhook(d.hook.name))
	if missing != nil && !errors.Is(missing, store.ErrNotFound) {
		return missing
	}
	vitals, err := d.Store.Vitals(ctx)
	if err != nil {
		return err
	}
	if missing == nil {
		v, err := store.Decode[store.Webhook](kv)
		switch {
		case errors.Is(err, store.ErrSchema):
			return err
		case err != nil:
			d.log.Error("webhook starts over: its record cannot be read", "error", err)
		case v.Record.Revision > vitals.Revision: // from another etcd, restored from a backup
			d.record = v.Record
			d.record.Revision, d.dirty = vitals.Revision, true
			return d.save(ctx)
		default:
			d.record = v.Record
			return nil
		}
	}
	d.record = store.Webhook{Name: d.hook.name, Revision: vitals.Revision, At: time.Now().UTC()}
	d.dirty = true
	return d.save(ctx)
}

// follow sends new journal entries, from the recorded position on. Entries are ordered by the
// revisions of their commits, since their times come from several clocks (SAFE-13). If etcd has
// compacted changes since, what the journal still holds of them is sent first.
func (d *delivery) follow(ctx context.Context) error {
	if d.later.Key != "" {
		if _, err := d.deliver(ctx, d.later, true); err != nil {
			return err
		}
		d.later = store.KV{}
	}
	err := d.watch(ctx, d.record.Revision+1)
	if !errors.Is(err, store.ErrCompacted) {
		return err
	}
	at, err := d.catchUp(ctx)
	if err != nil {
		return err
	}
	return d.watch(ctx, at+1)
}

// watch sends new journal entries, from a revision on.
func (d *delivery) watch(ctx context.Context, from store.Revision) error {
	return store.Changes(ctx, d.Store, d.Keys.Of(store.KindEvents), from, func(b store.Batch) error {
		for _, e := range b.Events {
			if e.Deleted {
				continue
			}
			d.reached(e.KV.Created - 1)
			if done, err := d.deliver(ctx, e.KV, false); err != nil {
				return err
			} else if !done {
				d.later = e.KV
				return errLater
			}
		}
		d.reached(b.Revision)
		return d.save(ctx)
	})
}

// catchUp sends journal entries that were not sent yet, and returns the revision up to which that
// is done.
func (d *delivery) catchUp(ctx context.Context) (store.Revision, error) {
	waiting, at, err := d.list(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range waiting {
		d.reached(e.revision - 1)
		kv, err := d.Store.Get(ctx, e.key)
		switch {
		case errors.Is(err, store.ErrNotFound): // the journal has dropped it since
			d.record.Missed++
			d.dirty = true
			continue
		case err != nil:
			return 0, err
		}
		if _, err := d.deliver(ctx, kv, true); err != nil {
			return 0, err
		}
	}
	d.reached(at)
	return at, nil
}

// reached records that the journal is finished up to a revision.
func (d *delivery) reached(revision store.Revision) {
	if revision <= d.record.Revision {
		return
	}
	d.record.Revision = revision
	clear(d.done)
	if time.Since(d.noted) > idleEvery {
		d.record.At, d.dirty = time.Now().UTC(), true
	}
}

// list returns the entries to be sent, in the order of their commits, and the revision of the list.
func (d *delivery) list(ctx context.Context) ([]entry, store.Revision, error) {
	var found []entry
	var at store.Revision
	from := ""
	for {
		part, err := d.Store.ListPart(ctx, d.Keys.Of(store.KindEvents), from, partSize, at)
		if err != nil {
			return nil, 0, err
		}
		at = part.Revision
		for _, kv := range part.KVs {
			if _, ok := d.wanted(kv); ok {
				found = append(found, entry{kv.Key, kv.Created})
			}
		}
		if part.Next == "" {
			break
		}
		from = part.Next
	}
	slices.SortStableFunc(found, func(a, b entry) int { return cmp.Compare(a.revision, b.revision) })
	return found, at, nil
}

// wanted returns the journal entry of a key, if it is new and passes the filters.
func (d *delivery) wanted(kv store.KV) (store.JournalEntry, bool) {
	v, err := store.Decode[store.JournalEntry](kv)
	_, done := d.done[kv.Key]
	return v.Record, err == nil && kv.Created > d.record.Revision && !done && d.hook.passes(&v.Record)
}

// deliver sends an entry if it is wanted, and reports whether it is finished: delivered, given up,
// or filtered. It tries once unless patient is set.
func (d *delivery) deliver(ctx context.Context, kv store.KV, patient bool) (done bool, err error) {
	entry, ok := d.wanted(kv)
	if !ok {
		return true, nil
	}
	e := newEvent(d.Shard, kv, &entry)
	if slices.ContainsFunc(d.record.DeadLetters, func(l store.DeadLetter) bool { return l.ID == e.ID }) {
		return true, nil // by the previous leader
	}
	for pause := retryFirst; ; pause = min(2*pause, maxRetry) {
		e.Missed = d.record.Missed
		failed := d.hook.Send(ctx, &e)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		d.dirty = true
		if failed == nil {
			d.delivered(e.At)
			d.done[kv.Key] = struct{}{}
			return true, d.save(ctx)
		}
		if d.failed(&e, failed) {
			d.done[kv.Key] = struct{}{}
			return true, d.saveNow(ctx)
		}
		if err := d.save(ctx); err != nil || !patient {
			return false, err
		}
		if f := (*failure)(nil); errors.As(failed, &f) && f.after > pause {
			pause = f.after
		}
		if !wait(ctx, pause+rand.N(pause/4)) {
			return false, context.Cause(ctx)
		}
	}
}

func (d *delivery) delivered(at time.Time) {
	if d.record.Trying != "" {
		d.log.Info("webhook takes events again", "after", d.record.Tried.D().Round(time.Second))
	}
	d.record.At = at
	d.record.Trying, d.record.Since, d.record.Tried, d.record.Why, d.record.Missed = "", time.Time{}, 0, "", 0
}

// failed records a failed attempt, and reports whether the event is given up. It adds up the time
// of the attempts, because the previous leader's clock may have been different (SAFE-13).
func (d *delivery) failed(e *Event, failed error) bool {
	now, r := time.Now().UTC(), &d.record
	if r.Trying == e.ID && !d.tried.IsZero() {
		r.Tried += store.Duration(now.Sub(d.tried))
	}
	d.tried = now
	if r.Trying != e.ID {
		r.Trying, r.Since, r.Tried = e.ID, now, 0
		d.saved = time.Time{} // a new leader continues the same hour
		d.log.Warn("webhook did not take an event", "event", e.ID, "error", failed)
	}
	r.Why = failed.Error()
	f := (*failure)(nil)
	if final := errors.As(failed, &f) && f.final; !final && r.Tried.D() < giveUpAfter {
		return false
	}
	d.log.Error("webhook: event given up", "event", e.ID, "rule", e.Rule, "error", failed)
	r.DeadLetters = append(r.DeadLetters, store.DeadLetter{
		ID: e.ID, At: e.At, GivenUp: now, Rule: e.Rule, Group: e.Group, Instance: e.Instance, Why: r.Why,
	})
	r.DeadLetters = r.DeadLetters[max(0, len(r.DeadLetters)-maxDeadLetters):]
	r.DeadCount++
	r.Missed++
	r.At, r.Trying, r.Since, r.Tried = e.At, "", time.Time{}, 0
	return true
}

// save records up to which entry events are delivered, if that is due.
func (d *delivery) save(ctx context.Context) error {
	if !d.dirty || time.Since(d.saved) < saveEvery {
		return nil
	}
	return d.saveNow(ctx)
}

func (d *delivery) saveNow(ctx context.Context) error {
	d.record.Schema = store.Schema
	err := d.Commit(ctx, []store.Write{store.Put(d.Keys.Webhook(d.hook.name), store.Encode(d.record))})
	if err != nil {
		return fmt.Errorf("record how far the deliveries have come: %w", err)
	}
	d.saved, d.noted, d.dirty = time.Now(), time.Now(), false
	return nil
}

// wait waits, and reports whether ctx has not ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
