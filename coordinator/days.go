package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

const (
	dayLong     = 24 * time.Hour
	daysLooked  = 10 * time.Minute // how often a term looks whether a day is to be summed up
	daySettles  = 10 * time.Minute // after midnight: what belongs to the day is written by then
	dayAnswers  = 10 * time.Second // for one request
	dayTogether = 60               // summaries in one transaction
	// mostEntries bounds what is read of the journal, and so the memory that it takes. A summary says
	// how many more there were.
	mostEntries = 200_000
	entryPart   = 1_000
	// mostSummaries bounds how many are kept of all groups together, whatever days_kept is.
	mostSummaries = 20_000
)

// days is what a term knows of the summaries.
type days struct {
	t    *term
	done map[string]bool // days that are summed up
}

// keepDays sums up the journal of each day once it is over, so that reports and replays reach back
// further than events_kept. Which days are to do is what etcd does not have yet, so a new leader
// goes on where the last one died, and nothing is written twice. Nothing in it ends the term: what
// fails is tried again.
func (t *term) keepDays(ctx context.Context) {
	d := &days{t: t, done: map[string]bool{}}
	tick := time.NewTicker(daysLooked)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.look(ctx, time.Now().UTC()); err != nil && ctx.Err() == nil {
			t.log.Debug("days not summed up", "error", err)
		}
	}
}

// look sums up the days that are over, that the journal covers from their beginning on, and that
// have no summary yet.
func (d *days) look(ctx context.Context, now time.Time) error {
	var created time.Time
	var apart time.Duration
	if !d.t.r.cache.View(func(c *cache.Content) {
		created, apart = c.Shard.Record.Created, evidence.ClocksApart(c)
	}) || apart >= plan.ClocksApart {
		return nil // by a wrong clock a day could seem to be over
	}
	settings := d.t.settings()
	end := now.Add(-daySettles).Truncate(dayLong) // of the last day that is over
	reach := now.Add(-settings.EventsKept.D())
	var open []time.Time
	// The day in which the shard was created is covered as far as there was anything.
	covers := func(day time.Time) bool {
		return day.Add(dayLong).After(created) && (!day.Before(reach) || !created.Before(reach)) &&
			end.Sub(day) <= settings.DaysKept.D()
	}
	for day := end.Add(-dayLong); covers(day); day = day.Add(-dayLong) {
		is, err := d.isDone(ctx, day)
		if err != nil {
			return err
		}
		if !is {
			open = append(open, day)
		}
	}
	if len(open) == 0 {
		return nil
	}
	if err := d.sumUp(ctx, open, now); err != nil {
		return err
	}
	return d.forget(ctx, int(settings.DaysKept.D()/dayLong))
}

// isDone reports whether a day is summed up.
func (d *days) isDone(ctx context.Context, day time.Time) (bool, error) {
	name := day.Format(store.DayLayout)
	if d.done[name] {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dayAnswers)
	defer cancel()
	_, err := d.t.r.deps.Store.Get(ctx, d.t.r.keys.DayDone(name))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	d.done[name] = err == nil
	return err == nil, err
}

// sumUp sums days up, of which the last comes first.
func (d *days) sumUp(ctx context.Context, open []time.Time, now time.Time) error {
	first := open[len(open)-1]
	in := review.Input{}
	unread, err := d.entries(ctx, &in, first.Add(-review.Before))
	if err != nil {
		return err
	}
	d.t.r.cache.View(func(c *cache.Content) {
		for _, rec := range c.Instances {
			in.Instances = append(in.Instances, rec.Record)
		}
	})
	for i := len(open) - 1; i >= 0; i-- {
		if in.Loads, err = d.loads(ctx, open[i]); err != nil {
			return err
		}
		summaries := review.Days(in, open[i])
		for n := range summaries {
			summaries[n].Unread = unread
		}
		if err := d.write(ctx, open[i].Format(store.DayLayout), summaries, now); err != nil {
			return err
		}
	}
	return nil
}

// entries reads the journal from a time on, and returns how many entries it left out.
func (d *days) entries(ctx context.Context, in *review.Input, since time.Time) (unread int, err error) {
	keys := d.t.r.keys
	err = d.parts(ctx, keys.Of(store.KindEvents), keys.EventsFrom(since), "", func(kv store.KV) {
		if len(in.Entries) == mostEntries {
			unread++
		} else if e, err := store.Decode[store.JournalEntry](kv); err == nil {
			in.Entries = append(in.Entries, review.Slim(e.Record))
		}
	})
	return unread, err
}

// loads reads the loads of a day.
func (d *days) loads(ctx context.Context, day time.Time) (all []store.Load, err error) {
	keys := d.t.r.keys
	err = d.parts(ctx, keys.Of(store.KindLoads), keys.LoadsFrom(day), keys.LoadsFrom(day.Add(dayLong)),
		func(kv store.KV) {
			if l, err := store.Decode[store.Load](kv); err == nil {
				all = append(all, l.Record)
			}
		})
	return all, err
}

// parts reads the keys from one to another, some at a time, each part as it is then: none of these
// keys is written again once its hour is over.
func (d *days) parts(ctx context.Context, prefix, from, to string, take func(store.KV)) error {
	for {
		part, err := d.part(ctx, prefix, from, entryPart)
		if err != nil {
			return err
		}
		for _, kv := range part.KVs {
			if to != "" && kv.Key >= to {
				return nil
			}
			take(kv)
		}
		if from = part.Next; from == "" {
			return nil
		}
	}
}

func (d *days) part(ctx context.Context, prefix, from string, most int) (store.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, dayAnswers)
	defer cancel()
	return d.t.r.deps.Store.ListPart(ctx, prefix, from, most, 0)
}

// write writes the summaries of a day, and at last that it is done. Those that an earlier leader
// wrote before it died stay as they are: the journal has not become better since.
func (d *days) write(ctx context.Context, day string, summaries []store.Day, now time.Time) error {
	keys, had := d.t.r.keys, map[string]bool{}
	if err := d.parts(ctx, keys.DayDone(day), "", "", func(kv store.KV) { had[kv.Key] = true }); err != nil {
		return err
	}
	var writes []store.Write
	for _, s := range summaries {
		if key := keys.Day(day, s.Group); !had[key] {
			writes = append(writes, store.Put(key, store.Encode(s)))
		}
	}
	for len(writes) > dayTogether {
		if err := d.commit(ctx, writes[:dayTogether]); err != nil {
			return err
		}
		writes = writes[dayTogether:]
	}
	d.t.r.deps.Before("day written", day)
	writes = append(writes, store.Put(keys.DayDone(day), store.Encode(store.DayDone{
		Schema: store.Schema, Day: day, Groups: len(summaries), At: now, By: d.t.r.cfg.ID,
	})))
	if err := d.commit(ctx, writes); err != nil {
		return err
	}
	d.done[day] = true
	d.t.log.Debug("day summed up", "day", day, "groups", len(summaries))
	return nil
}

func (d *days) commit(ctx context.Context, writes []store.Write) error {
	ctx, cancel := context.WithTimeout(ctx, dayAnswers)
	defer cancel()
	_, err := d.t.r.deps.Store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{d.t.fence.Condition()}, Writes: writes,
	})
	return err
}

// forget removes the oldest days beyond those that are kept. It counts days and compares no time,
// so that no clock can remove them.
func (d *days) forget(ctx context.Context, keep int) error {
	keys := d.t.r.keys
	prefix := keys.Of(store.KindDays)
	var names []string
	all := -1
	for from := ""; ; {
		part, err := d.part(ctx, prefix, from, 1)
		if err != nil {
			return err
		}
		if all < 0 {
			all = len(part.KVs) + part.Behind
		}
		if len(part.KVs) == 0 {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(part.KVs[0].Key, prefix), "/")
		names = append(names, name)
		from = keys.DayDone(name) + string('/'+1) // behind all keys of the day
	}
	for len(names) > 1 && (len(names) > max(1, keep) || all > mostSummaries) {
		n, err := d.remove(ctx, names[0])
		if err != nil {
			return fmt.Errorf("remove day %s: %w", names[0], err)
		}
		names, all = names[1:], all-n
	}
	return nil
}

// remove removes a day.
func (d *days) remove(ctx context.Context, day string) (n int, err error) {
	var writes []store.Write
	err = d.parts(ctx, d.t.r.keys.DayDone(day), "", "", func(kv store.KV) {
		writes = append(writes, store.Delete(kv.Key))
	})
	for len(writes) > n && err == nil {
		part := writes[n:min(len(writes), n+dayTogether)]
		err = d.commit(ctx, part)
		n += len(part)
	}
	return n, err
}
