package trial

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/cmd/bench/crowd"
	"github.com/leasehold/leasehold/cmd/bench/measure"
	"github.com/leasehold/leasehold/store"
)

// ReadersPlan says who reads the page of a group while it rolls.
type ReadersPlan struct {
	Readers int
	For     time.Duration // each of the periods, half of which have readers
	Periods int           // an even number
	AtOnce  int           // instances that the roll replaces at a time
	Browser bool          // one of the readers is a browser
}

// Readers is what live pages cost the replica that serves them, and the agents beside them. Periods
// with and without readers take turns, so that both see the same roll and the same machine.
type Readers struct {
	Setting
	Readers  int      `json:"readers"`
	Periods  []Period `json:"periods"`
	With     Serving  `json:"with_readers"`
	Without  Serving  `json:"without_readers"`
	Cost     float64  `json:"cost_cores"` // of the readers to the replica
	Updates  float64  `json:"updates_per_second_and_reader"`
	Received float64  `json:"bytes_per_second_and_reader"`
	Rolled   float64  `json:"replaced_per_second"`
	Dropped  int      `json:"streams_ended_early"`
	Drawn    *Drawn   `json:"browser,omitempty"` // nil: no reader is a browser

	Unacknowledged uint64         `json:"reports_not_acknowledged"`
	Lost           int            `json:"judged_lost"`
	Wrongly        []string       `json:"wrongly,omitempty"` // the first of them
	Troubles       map[string]int `json:"agents_troubles,omitempty"`
	Verdict        Verdict        `json:"verdict"`
}

// Period is what the replica and the agents were seen to do for a while.
type Period struct {
	Readers bool    `json:"readers"`
	Seconds float64 `json:"seconds"`
	Cores   float64 `json:"replica_cores"`
	Updates uint64  `json:"updates"` // that all readers together got
	Bytes   uint64  `json:"bytes"`
}

// Serving is the sum of the periods of a kind.
type Serving struct {
	Cores   float64 `json:"replica_cores"`
	Latency Times   `json:"report_to_renewed"`
}

// maxCost is the share of a processor that readers may cost a replica.
const maxCost = 0.10

// maxDrawing is how many milliseconds a browser may take until a page can be used again after an
// update.
const maxDrawing = 200

// Readers has pages read while the first group rolls again and again.
func (t *Trial) Readers(ctx context.Context, p ReadersPlan) (Readers, error) {
	machine, err := measure.ReadMachine(runtime.GOMAXPROCS(0))
	if err != nil {
		return Readers{}, err
	}
	r := Readers{Setting: t.setting(machine), Readers: p.Readers}
	var rampUp, settled float64
	if err := t.letIn(ctx, &rampUp, &settled); err != nil {
		return r, err
	}
	if err := t.calm(ctx); err != nil {
		return r, err
	}
	t.seen.forget()
	roll := &rolling{t: t, group: t.shard.Groups[0], atOnce: p.AtOnce}
	if err := roll.begin(ctx); err != nil {
		return r, err
	}
	begun, err := t.read(ctx)
	if err != nil {
		return r, err
	}
	var latency [2]measure.Histogram
	var spent, lasted [2]float64
	var updates, received uint64
	var heard audience
	for n := range p.Periods {
		with := n % 2
		one, before, err := t.period(ctx, p, with == 1, &heard, roll)
		if err != nil {
			return r, err
		}
		after, err := t.crowds.stats()
		if err != nil {
			return r, err
		}
		latency[with].Merge(after.Latency.Since(before.Latency))
		spent[with] += one.Cores * one.Seconds
		lasted[with] += one.Seconds
		updates, received = updates+one.Updates, received+one.Bytes
		r.Periods = append(r.Periods, one)
	}
	ended, err := t.read(ctx)
	if err != nil {
		return r, err
	}
	r.Without = Serving{Cores: spent[0] / lasted[0], Latency: timesOf(latency[0])}
	r.With = Serving{Cores: spent[1] / lasted[1], Latency: timesOf(latency[1])}
	r.Cost = r.With.Cores - r.Without.Cores
	each := lasted[1] * float64(max(1, p.plain()))
	r.Updates, r.Received = float64(updates)/each, float64(received)/each
	r.Dropped = int(heard.dropped.Load())
	if p.Browser {
		r.Drawn = drawnOf(heard.drawn)
	}
	r.Rolled = float64(ended.seen.made-begun.seen.made) / ended.at.Sub(begun.at).Seconds()
	r.Unacknowledged = ended.stats.Nacks - begun.stats.Nacks
	lost := t.seen.judgedLost()
	r.Lost, r.Wrongly = len(lost), named(lost)
	r.Troubles = more(ended.stats.Troubles, begun.stats.Troubles)
	r.Verdict = r.judge()
	return r, nil
}

// period measures the replica for a while, with readers or without.
func (t *Trial) period(ctx context.Context, p ReadersPlan, with bool, heard *audience, roll *rolling) (one Period,
	before crowd.Stats, err error,
) {
	doing := "rolling, no readers"
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	if with {
		doing = fmt.Sprintf("rolling, %d readers", p.Readers)
		at, page := "http://"+t.replicas[0].http, "/g/"+url.PathEscape(roll.group)
		if p.Browser {
			b, failed := openBrowser(ctx, at+page)
			if failed != nil {
				return one, before, failed
			}
			defer func() {
				drawn, ended := b.close()
				heard.drawn = append(heard.drawn, drawn...)
				err = errors.Join(err, ended)
			}()
		}
		for range p.plain() {
			readers.Go(func() { heard.read(reading, at+"/live?page="+url.QueryEscape(page)) })
		}
		// Each begins with the whole page. What it costs to open them is not what they cost to keep.
		if err := t.pass(ctx, "readers come", time.Second); err != nil {
			return one, before, err
		}
	}
	if before, err = t.crowds.stats(); err != nil {
		return one, before, err
	}
	begun, updates, received := t.usage.read()[t.replicas[0].id], heard.updates.Load(), heard.bytes.Load()
	end := time.Now().Add(p.For)
	var next time.Time
	err = t.await(ctx, doing, func() (string, bool) {
		if now := time.Now(); now.After(next) {
			next = now.Add(time.Second)
			if err := roll.goOn(ctx); err != nil {
				t.note(err)
			}
		}
		return "for " + time.Until(end).Round(time.Second).String(), time.Now().After(end)
	})
	ended := t.usage.read()[t.replicas[0].id]
	return Period{
		Readers: with, Seconds: ended.At.Sub(begun.At).Seconds(), Cores: measure.Cores(begun, ended),
		Updates: heard.updates.Load() - updates, Bytes: heard.bytes.Load() - received,
	}, before, err
}

// plain is how many readers are no browser.
func (p ReadersPlan) plain() int {
	if p.Browser {
		return p.Readers - 1
	}
	return p.Readers
}

// audience is what all readers have received.
type audience struct {
	updates, bytes, dropped atomic.Uint64
	drawn                   []float64 // how long the browser took for each update, in milliseconds
}

// read reads a live page until ctx ends, as an EventSource does.
func (a *audience) read(ctx context.Context, path string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		a.dropped.Add(1)
		return
	}
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		a.dropped.Add(1)
		return
	}
	defer func() { _ = resp.Body.Close() }() // it was read as far as it came
	in := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := in.ReadSlice('\n')
		a.bytes.Add(uint64(len(line)))
		if strings.HasPrefix(string(line[:min(len(line), 16)]), "event: delta") {
			a.updates.Add(1)
		}
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
		case ctx.Err() != nil:
			return
		default:
			a.dropped.Add(1)
			return
		}
	}
}

// rolling keeps a group rolling: its instances are replaced, a few at a time.
type rolling struct {
	t      *Trial
	group  string
	atOnce int
	number int
	begun  time.Time
}

// rollKnown is how long the leader may take to begin a roll.
const rollKnown = 5 * time.Second

// goOn begins the next roll when none is under way.
func (r *rolling) goOn(ctx context.Context) error {
	if r.t.seen.rolling(r.group) || time.Since(r.begun) < rollKnown {
		return nil
	}
	return r.begin(ctx)
}

// begin changes the template, which replaces every instance.
func (r *rolling) begin(ctx context.Context) error {
	key := store.KeysOf(r.t.cfg.Shard).Group(r.group)
	kv, err := r.t.store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("begin a roll: %w", err)
	}
	v, err := store.Decode[store.Group](kv)
	if err != nil {
		return fmt.Errorf("begin a roll: %w", err)
	}
	r.number++
	r.begun = time.Now()
	g := v.Record
	g.Template.Tags = map[string]string{"roll": strconv.Itoa(r.number)}
	g.Budget.MaxExpansion = store.Amount(r.atOnce)
	if _, err = r.t.store.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.At(key, v.Modified)}, Writes: []store.Write{store.Put(key, store.Encode(g))},
	}); err != nil {
		return fmt.Errorf("begin a roll: %w", err)
	}
	return nil
}

func (r *Readers) judge() Verdict {
	var v Verdict
	if r.Cost > maxCost {
		v.Failed = append(v.Failed,
			fmt.Sprintf("they cost %.0f%% of a processor, more than %.0f%%", 100*r.Cost, 100*maxCost))
	}
	if r.Unacknowledged > 0 {
		v.Failed = append(v.Failed, fmt.Sprintf("%d reports renewed nothing", r.Unacknowledged))
	}
	if r.Lost > 0 {
		v.Failed = append(v.Failed, fmt.Sprintf("%d instances were judged lost", r.Lost))
	}
	switch {
	case r.Drawn == nil:
	case r.Drawn.Updates == 0:
		v.Failed = append(v.Failed, "the browser drew nothing")
	case r.Drawn.P99 > maxDrawing:
		v.Failed = append(v.Failed,
			fmt.Sprintf("the browser took %.0f ms to draw an update (p99), more than %d ms", r.Drawn.P99, maxDrawing))
	}
	if r.Dropped > 0 {
		v.Failed = append(v.Failed, fmt.Sprintf("%d streams ended early", r.Dropped))
	}
	return v.said(
		fmt.Sprintf("%d live pages cost the replica %.1f%% of a processor beside %d agents, of which %.1f a second are "+
			"replaced", r.Readers, 100*r.Cost, r.Agents, r.Rolled),
		fmt.Sprintf("%d live pages are too much for a replica with %d agents", r.Readers, r.Agents))
}
