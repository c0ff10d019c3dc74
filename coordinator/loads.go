package coordinator

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/store"
)

const (
	// maxFine is of how many groups each five minutes are recorded: of those with scale, in the order
	// of their names. Other groups have a point for the hour.
	maxFine     = 250
	loadSampled = time.Minute
	loadPoint   = 5 * time.Minute        // of which a point has the mean
	loadFlush   = 300 * time.Millisecond // how long a term that ends writes, while the next leader waits
	loadWritten = 15 * time.Minute       // the most that is lost with a leader that dies
	loadFresh   = 10 * time.Minute       // how old a report may be to count: those without news come seldom
	// loadTogether bounds the writes of a transaction.
	loadTogether = 100
)

// loads is what a term has seen of the load of groups and not written yet.
type loads struct {
	t      *term
	hour   time.Time
	points map[string]map[int]*loadSum // of the hour, by group and minute
	// earlier are the points of the hour that a leader before wrote, by group; nil: not read yet.
	earlier map[string][]store.LoadPoint
	wrote   time.Time
	warned  bool // nothing was written since a warning
}

// loadSum adds up the samples of a point.
type loadSum struct {
	samples int
	known   int // samples in which at least one instance reported its load
	sum     store.LoadPoint
}

// keepLoads records the load of groups while this replica leads: no record has it, and a replay
// needs it (AUTO-4). It lasts as long as the journal. Nothing in it ends the term: what cannot be
// written now is written the next time, or is missing.
func (t *term) keepLoads(ctx context.Context) {
	l := &loads{t: t, points: map[string]map[int]*loadSum{}, wrote: time.Now()}
	tick := time.NewTicker(loadSampled)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			// while the replica still holds the fence, the points since the last write can be written
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFlush)
			l.write(end)
			cancel()
			return
		case <-tick.C:
		}
		l.sample(ctx, time.Now().UTC())
	}
}

// sample adds the present load of each group to its point, and writes the points when that is due.
func (l *loads) sample(ctx context.Context, now time.Time) {
	hour := now.Truncate(time.Hour)
	if !hour.Equal(l.hour) {
		l.write(ctx)
		l.hour, l.points, l.earlier = hour, map[string]map[int]*loadSum{}, nil
	}
	l.t.r.cache.View(func(c *cache.Content) {
		fine := 0
		for _, name := range slices.Sorted(maps.Keys(c.Status)) {
			minute := 0
			if g := c.Status[name].Record.Accepted; g != nil && g.Scale != nil && fine < maxFine {
				fine++
				minute = int(now.Sub(hour).Truncate(loadPoint).Minutes())
			}
			p, known := loadOf(c, name, now)
			if !known && len(p.Outside) == 0 {
				continue
			}
			if l.points[name] == nil {
				l.points[name] = map[int]*loadSum{}
			}
			if l.points[name][minute] == nil {
				l.points[name][minute] = &loadSum{}
			}
			l.points[name][minute].add(p, known)
		}
	})
	if now.Sub(l.wrote) >= loadWritten {
		l.write(ctx)
	}
}

// loadOf is the present load of a group, averaged over the instances that report it.
func loadOf(c *cache.Content, group string, now time.Time) (p store.LoadPoint, any bool) {
	known := 0
	for _, id := range c.ByGroup[group] {
		if c.Instances[id].Record.Phase != store.Running {
			continue
		}
		p.Run++
		r, reported := c.Reports[id]
		if !reported || now.Sub(r.Record.Received) > loadFresh {
			continue
		}
		i := slices.IndexFunc(r.Record.Host.Windows, func(w store.HostWindow) bool { return w.Span.D() == time.Minute })
		if i < 0 || r.Record.Host.Windows[i].Covered <= 0 {
			continue
		}
		w := r.Record.Host.Windows[i]
		known++
		p.CPU += w.CPUPercent
		p.Memory += w.MemoryPercent
		p.Network += float64(w.NetworkSent+w.NetworkRecv) / w.Covered.D().Seconds() / 1e6
	}
	if known > 0 {
		n := float64(known)
		p.CPU, p.Memory, p.Network = p.CPU/n, p.Memory/n, p.Network/n
	}
	if s := c.Status[group].Record.Scale; s != nil {
		for _, number := range s.Numbers {
			if number.Per == "" || number.Old {
				continue
			}
			if p.Outside == nil {
				p.Outside = map[string]float64{}
			}
			p.Outside[number.Metric] = number.Value
		}
	}
	return p, known > 0
}

func (s *loadSum) add(p store.LoadPoint, known bool) {
	s.samples++
	s.sum.Run += p.Run
	if known {
		s.known++
		s.sum.CPU += p.CPU
		s.sum.Memory += p.Memory
		s.sum.Network += p.Network
	}
	if len(p.Outside) > 0 {
		s.sum.Outside = p.Outside // the last one
	}
}

// point is the mean of the samples.
func (s *loadSum) point(minute int) store.LoadPoint {
	n := max(1, float64(s.known))
	short := func(v float64) float64 { return math.Round(v*100) / 100 }
	return store.LoadPoint{
		Minute: minute, Run: short(s.sum.Run / float64(s.samples)), CPU: short(s.sum.CPU / n),
		Memory: short(s.sum.Memory / n), Network: short(s.sum.Network / n), Outside: s.sum.Outside,
	}
}

// write puts the points into the records of the hour.
func (l *loads) write(ctx context.Context) {
	l.wrote = time.Now()
	if len(l.points) == 0 {
		return
	}
	err := l.writeAll(ctx)
	switch {
	case err == nil:
		l.warned = false
	case ctx.Err() == nil && !l.warned:
		l.warned = true
		l.t.log.Warn("load not recorded", "error", err, "next", "tried again every "+loadWritten.String())
	}
}

func (l *loads) writeAll(ctx context.Context) error {
	if l.earlier == nil {
		if err := l.readEarlier(ctx); err != nil {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(l.points))
	for part := range slices.Chunk(names, loadTogether) {
		if err := l.writePart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// readEarlier reads what an earlier leader wrote of the hour. While this one leads no other
// writes it, so once is enough.
func (l *loads) readEarlier(ctx context.Context) error {
	keys, earlier := l.t.r.keys, map[string][]store.LoadPoint{}
	err := l.t.parts(ctx, keys.Of(store.KindLoads), keys.LoadsFrom(l.hour), keys.LoadsFrom(l.hour.Add(time.Hour)),
		func(kv store.KV) {
			if v, err := store.Decode[store.Load](kv); err == nil {
				earlier[v.Record.Group] = v.Record.Points
			}
		})
	if err == nil {
		l.earlier = earlier
	}
	return err
}

func (l *loads) writePart(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	lease, err := l.t.r.journal.leaseNow(ctx)
	if err != nil {
		return err
	}
	txn := store.Txn{Conditions: []store.Condition{l.t.fence.Condition()}}
	for _, name := range names {
		rec := store.Load{Schema: store.Schema, Group: name, Hour: l.hour}
		for _, p := range l.earlier[name] {
			if l.points[name][p.Minute] == nil { // else this term saw the same minutes
				rec.Points = append(rec.Points, p)
			}
		}
		for minute, sum := range l.points[name] {
			rec.Points = append(rec.Points, sum.point(minute))
		}
		slices.SortFunc(rec.Points, func(a, b store.LoadPoint) int { return cmp.Compare(a.Minute, b.Minute) })
		txn.Writes = append(txn.Writes, store.PutLeased(l.t.r.keys.Load(l.hour, name), store.Encode(rec), lease))
	}
	_, err = l.t.r.deps.Store.Commit(ctx, txn)
	if errors.Is(err, store.ErrLeaseGone) {
		l.t.r.journal.renewLease()
	}
	return err
}
