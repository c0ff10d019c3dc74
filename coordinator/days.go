package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

const (
	dayLong     = 24 * time.Hour
	daysLooked  = 10 * time.Minute // how often a term looks whether a day is to be summed up
	daySettles  = 10 * time.Minute // after midnight: everything of the day is written by then
	dayAnswers  = 10 * time.Second // for one request
	dayTogether = 60               // summaries in one transaction
	dayBytes    = 512 << 10        // of them: etcd takes 1.5 MB
	// maxEntries limits the journal entries that are kept in memory for one day. A summary says
	// how many more there were.
	maxEntries = 200_000
	entryPart  = 1_000
	// maxSummaries limits the summaries of all groups together, whatever days_kept is.
	maxSummaries = 20_000
)

// days is what a term knows of the summaries.
type days struct {
	t      *term
	done   map[string]bool // days that are summed up
	warned bool            // nothing has succeeded since a warning
}

// keepDays sums up the journal of each day once it is over, so that reports and replays reach back
// further than events_kept. It writes the summaries that etcd does not have yet, so a new leader
// continues where the last one stopped, and nothing is written twice. No failure here ends the
// term: it is retried.
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
		switch err := d.catchUp(ctx, time.Now().UTC()); {
		case err == nil:
			d.warned = false
		case ctx.Err() == nil && !d.warned:
			d.warned = true
			t.log.Warn("days are not summed up", "error", err, "next", "tried again every "+daysLooked.String())
		}
	}
}

// catchUp sums up the days that are over, are covered by the journal, and have no summary yet. A
// day that fails does not delay the others, unless nothing older is kept: beside younger days it
// would look removed. Then they wait until it is written, or the journal no longer has it.
func (d *days) catchUp(ctx context.Context, now time.Time) error {
	var begin time.Time
	if !d.t.r.cache.View(func(c *cache.Content) { begin = c.Served.Record.Begins(c.Shard.Record) }) {
		return nil
	}
	apart := d.t.clocksApart()
	past, known := d.t.past.until(now, apart)
	if !known || apart {
		return nil // with a wrong clock a day could seem to be over
	}
	oldest, err := d.oldest(ctx)
	if err != nil {
		return err
	}
	settings := d.t.settings()
	end := past.Add(-daySettles).Truncate(dayLong) // of the last day that is over
	reach := now.Add(-settings.EventsKept.D())
	// The day in which the journal begins is covered from its first entry on. A day that was
	// removed to limit their number is not summed up again.
	covers := func(day time.Time) bool {
		return day.Add(dayLong).After(begin) && (!day.Before(reach) || !begin.Before(reach)) &&
			end.Sub(day) <= settings.DaysKept.D() && day.Format(store.DayLayout) >= oldest
	}
	var open []time.Time
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
	var failed error
	for _, day := range slices.Backward(open) {
		err := d.sumUp(ctx, day, begin, now)
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("sum up day %s: %w", day.Format(store.DayLayout), err))
		}
		if oldest == "" && err != nil {
			break
		}
		oldest = cmp.Or(oldest, day.Format(store.DayLayout))
	}
	return cmp.Or(failed, d.forget(ctx, int(settings.DaysKept.D()/dayLong)))
}

// oldest returns the oldest day that is kept; "" if there is none.
func (d *days) oldest(ctx context.Context) (string, error) {
	prefix := d.t.r.keys.Of(store.KindDays)
	part, err := d.t.part(ctx, prefix, "", 1)
	if err != nil || len(part.KVs) == 0 {
		return "", err
	}
	return d.dayOf(part.KVs[0].Key), nil
}

// dayOf returns the day of a key.
func (d *days) dayOf(key string) string {
	day, _, _ := strings.Cut(strings.TrimPrefix(key, d.t.r.keys.Of(store.KindDays)), "/")
	return day
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

// sumUp sums up one day, as far as it is after begin.
func (d *days) sumUp(ctx context.Context, day, begin, now time.Time) (err error) {
	entries := review.NewDayEntries(day, maxEntries)
	keys, in := d.t.r.keys, review.Input{Created: begin}
	// To the end of the journal: an entry of long after says that its instance ran on that day.
	err = d.t.parts(ctx, keys.Of(store.KindEvents), keys.EventsFrom(day.Add(-review.Before)), "", func(kv store.KV) {
		if e, err := store.Decode[store.JournalEntry](kv); err == nil {
			entries.Take(e.Record)
		}
	})
	if err != nil {
		return err
	}
	in.Entries = entries.All
	d.t.r.cache.View(func(c *cache.Content) {
		for _, rec := range c.Instances {
			in.Instances = append(in.Instances, rec.Record)
		}
	})
	if in.Loads, err = d.loads(ctx, day); err != nil {
		return err
	}
	summaries := review.Days(in, day)
	for n := range summaries {
		summaries[n].Unread = entries.Unread
	}
	return d.write(ctx, day.Format(store.DayLayout), summaries, now)
}

// loads reads the loads of a day.
func (d *days) loads(ctx context.Context, day time.Time) (all []store.Load, err error) {
	keys := d.t.r.keys
	err = d.t.parts(ctx, keys.Of(store.KindLoads), keys.LoadsFrom(day), keys.LoadsFrom(day.Add(dayLong)),
		func(kv store.KV) {
			if l, err := store.Decode[store.Load](kv); err == nil {
				all = append(all, l.Record)
			}
		})
	return all, err
}

// parts reads the keys from one to another, some at a time, each part as it is then: none of these
// keys is written again once its hour is over.
func (t *term) parts(ctx context.Context, prefix, from, to string, take func(store.KV)) error {
	for {
		part, err := t.part(ctx, prefix, from, entryPart)
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

func (t *term) part(ctx context.Context, prefix, from string, most int) (store.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, dayAnswers)
	defer cancel()
	return t.r.deps.Store.ListPart(ctx, prefix, from, most, 0)
}

// write writes the summaries of a day, and at last that it is done. Those that an earlier leader
// wrote before it died stay as they are: the journal has not become better since.
func (d *days) write(ctx context.Context, day string, summaries []store.Day, now time.Time) error {
	keys, had := d.t.r.keys, map[string]bool{}
	if err := d.t.parts(ctx, keys.DayDone(day), "", "", func(kv store.KV) { had[kv.Key] = true }); err != nil {
		return err
	}
	var writes []store.Write
	for _, s := range summaries {
		if key := keys.Day(day, s.Group); !had[key] {
			writes = append(writes, store.Put(key, store.Encode(s)))
		}
	}
	for n := together(writes); n < len(writes); n = together(writes) {
		if err := d.commit(ctx, writes[:n]); err != nil {
			return err
		}
		writes = writes[n:]
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

// together is how many of the first writes one transaction takes: at least one.
func together(writes []store.Write) (n int) {
	for size := 0; n < min(dayTogether, len(writes)); n++ {
		if size += len(writes[n].Value); size > dayBytes {
			return max(1, n)
		}
	}
	return n
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
// and no day is summed up before it is surely over, so that no clock can remove them.
func (d *days) forget(ctx context.Context, keep int) error {
	keys := d.t.r.keys
	prefix := keys.Of(store.KindDays)
	var names []string
	all := -1
	for from := ""; ; {
		part, err := d.t.part(ctx, prefix, from, 1)
		if err != nil {
			return err
		}
		if all < 0 {
			all = len(part.KVs) + part.Behind
		}
		if len(part.KVs) == 0 {
			break
		}
		name := d.dayOf(part.KVs[0].Key)
		names = append(names, name)
		from = keys.DayDone(name) + string('/'+1) // behind all keys of the day
	}
	for len(names) > 1 && (len(names) > max(1, keep) || all > maxSummaries) {
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
	err = d.t.parts(ctx, d.t.r.keys.DayDone(day), "", "", func(kv store.KV) {
		writes = append(writes, store.Delete(kv.Key))
	})
	for len(writes) > n && err == nil {
		part := writes[n:min(len(writes), n+dayTogether)]
		err = d.commit(ctx, part)
		n += len(part)
	}
	return n, err
}
