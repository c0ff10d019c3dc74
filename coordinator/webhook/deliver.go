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
	retryMost   = time.Minute
	saveEvery   = 5 * time.Second
	// idleEvery is how often the place in the journal is recorded when nothing is sent, so that a new
	// leader reads little.
	idleEvery = 10 * time.Minute
	// slack is how much earlier than its commit an entry's time may be: entries are ordered by time in
	// etcd, and sent in the order of their commits.
	slack           = time.Hour
	mostDeadLetters = 20
	partSize        = 1_000 // entries that one request reads
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
		hooks.Go(func() { (&delivery{Deliverer: d, hook: h, log: d.Log.With("webhook", h.name)}).run(ctx) })
	}
	hooks.Wait()
}

// delivery is what is sent to one webhook.
type delivery struct {
	*Deliverer
	hook   *Hook
	log    *slog.Logger
	record store.Webhook
	saved  time.Time
	dirty  bool // the record is not in etcd as it is here
}

// entry is a journal entry that passes the webhook's filters.
type entry struct {
	key      string
	revision store.Revision
}

func (d *delivery) run(ctx context.Context) {
	pause := retryFirst
	again := func(err error) bool {
		if ctx.Err() == nil {
			d.log.Debug("webhook waits for etcd", "error", err)
		}
		ok := wait(ctx, pause)
		pause = min(2*pause, retryMost)
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

// load reads how far the leaders before have come. A webhook that is new begins with what happens
// from now on.
func (d *delivery) load(ctx context.Context) error {
	kv, err := d.Store.Get(ctx, d.Keys.Webhook(d.hook.name))
	if err == nil {
		var v store.Versioned[store.Webhook]
		if v, err = store.Decode[store.Webhook](kv); err == nil || errors.Is(err, store.ErrSchema) {
			d.record = v.Record
			return err
		}
		d.log.Error("webhook begins anew: its record cannot be read", "error", err)
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	vitals, err := d.Store.Vitals(ctx)
	if err != nil {
		return err
	}
	d.record = store.Webhook{Name: d.hook.name, Revision: vitals.Revision, At: time.Now().UTC()}
	d.dirty = true
	return d.save(ctx)
}

// follow sends what the journal holds that was not sent yet, and then what is added to it.
func (d *delivery) follow(ctx context.Context) error {
	waiting, at, err := d.list(ctx)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		d.reached(e.revision - 1)
		kv, err := d.Store.Get(ctx, e.key)
		switch {
		case errors.Is(err, store.ErrNotFound): // it was not kept for so long
			d.record.Missed++
			d.dirty = true
			continue
		case err != nil:
			return err
		}
		if _, err := d.deliver(ctx, kv, true); err != nil {
			return err
		}
	}
	d.reached(at)
	return store.Changes(ctx, d.Store, d.Keys.Of(store.KindEvents), at+1, func(b store.Batch) error {
		for _, e := range b.Events {
			if e.Deleted {
				continue
			}
			d.reached(e.KV.Created - 1)
			if done, err := d.deliver(ctx, e.KV, false); err != nil {
				return err
			} else if !done {
				return errLater
			}
		}
		d.reached(b.Revision)
		return d.save(ctx)
	})
}

// reached records that the journal is done up to a revision.
func (d *delivery) reached(revision store.Revision) {
	if revision <= d.record.Revision {
		return
	}
	d.record.Revision = revision
	if time.Since(d.record.At) > idleEvery {
		d.record.At, d.dirty = time.Now().UTC(), true
	}
}

// list returns the entries that are to be sent, in the order in which they were committed, and the
// revision of the list.
func (d *delivery) list(ctx context.Context) ([]entry, store.Revision, error) {
	var found []entry
	var at store.Revision
	from := d.Keys.EventsFrom(d.record.At.Add(-slack))
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
	return v.Record, err == nil && kv.Created > d.record.Revision && d.hook.passes(&v.Record)
}

// deliver sends an entry if it is wanted, and reports whether it is done with: delivered, given up,
// or left out. Unless it is to be patient it tries once.
func (d *delivery) deliver(ctx context.Context, kv store.KV, patient bool) (done bool, err error) {
	entry, ok := d.wanted(kv)
	if !ok {
		return true, nil
	}
	e := newEvent(d.Shard, kv, &entry)
	if slices.ContainsFunc(d.record.DeadLetters, func(l store.DeadLetter) bool { return l.ID == e.ID }) {
		return true, nil // by the leader before
	}
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		e.Missed = d.record.Missed
		failed := d.hook.Send(ctx, &e)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		d.dirty = true
		if failed == nil {
			d.delivered(e.At)
			return true, d.save(ctx)
		}
		if d.failed(&e, failed) {
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
		d.log.Info("webhook takes events again", "after", time.Since(d.record.Since).Round(time.Second))
	}
	d.record.At = at
	d.record.Trying, d.record.Since, d.record.Why, d.record.Missed = "", time.Time{}, "", 0
}

// failed records that an event was not taken, and reports whether it is given up.
func (d *delivery) failed(e *Event, failed error) bool {
	now, r := time.Now().UTC(), &d.record
	if r.Trying != e.ID {
		r.Trying, r.Since = e.ID, now
		d.saved = time.Time{} // a new leader goes on with the same hour
		d.log.Warn("webhook did not take an event", "event", e.ID, "error", failed)
	}
	r.Why = failed.Error()
	f := (*failure)(nil)
	if final := errors.As(failed, &f) && f.final; !final && now.Sub(r.Since) < giveUpAfter {
		return false
	}
	d.log.Error("webhook: event given up", "event", e.ID, "rule", e.Rule, "error", failed)
	r.DeadLetters = append(r.DeadLetters, store.DeadLetter{
		ID: e.ID, At: e.At, GivenUp: now, Rule: e.Rule, Group: e.Group, Instance: e.Instance, Why: r.Why,
	})
	r.DeadLetters = r.DeadLetters[max(0, len(r.DeadLetters)-mostDeadLetters):]
	r.DeadCount++
	r.Missed++
	r.At, r.Trying, r.Since = e.At, "", time.Time{}
	return true
}

// save records how far the deliveries have come, if that is due.
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
	d.saved, d.dirty = time.Now(), false
	return nil
}

// wait waits, and reports whether ctx still goes on.
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
