package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Follower is told what a prefix holds and how it changes. Its methods are called one at a time, in the order of what
// happened in the store.
type Follower interface {
	// Reset says what is there at one revision: all of it, ordered by key. Whatever the follower
	// believed before is void.
	Reset(Listing)
	// Apply says what changed since the revision of the last Reset or Apply, up to the batch's own. A batch
	// without events only says that nothing changed meanwhile. It never has an Err.
	Apply(Batch)
	// Interrupted says that from now on changes may be missed, and why. The next call is a Reset, or
	// another Interrupted if the attempt to list again failed.
	Interrupted(error)
}

// Reasons for an interruption that the watch itself does not give.
var (
	errSilent = fmt.Errorf("watch was silent for %s: %w", watchSilence, ErrUnavailable)
	errEnded  = fmt.Errorf("watch ended: %w", ErrUnavailable)
)

// The times of following.
const (
	followRetryFirst = 50 * time.Millisecond
	followRetryMost  = 2 * time.Second
	followList       = 30 * time.Second // one listing: 100,000 records take some seconds
)

// Follow keeps f informed of everything below those prefixes in wanted that lie in prefix (of all that lies below prefix if
// wanted is empty), until ctx ends; it returns the cause of that.
//
// What is wanted is listed at one revision, from then on prefix is watched as a whole by one watch, so that
// changes of different kinds of keys come in the order in which they happened. Changes of what is not wanted are
// left out, yet the revision moves with them. Naming what is wanted is for the listing's sake: the journal may hold
// 100,000 entries that nobody needs.
//
// When the watch fails, ends, or is silent for 3s although progress is due every second (SAFE-3), f is told so and all is
// listed again, after 50ms at first and up to 2s when that keeps failing.
func Follow(ctx context.Context, s Store, prefix string, wanted []string, f Follower) error {
	if len(wanted) == 0 {
		wanted = []string{prefix}
	}
	retry := backoff{first: followRetryFirst, most: followRetryMost}
	for {
		err := followOnce(ctx, s, prefix, wanted, f, &retry)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.Interrupted(err)
		if retry.wait(ctx) != nil {
			return context.Cause(ctx)
		}
	}
}

// followOnce lists and watches until that fails. It resets retry once the watch has delivered something.
func followOnce(ctx context.Context, s Store, prefix string, wanted []string, f Follower, retry *backoff) error {
	listing, err := listAll(ctx, s, wanted)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := s.Watch(ctx, prefix, listing.Revision+1)
	defer func() {
		cancel()
		for range batches { // until it is closed: nothing of the watch is left behind
		}
	}()
	f.Reset(listing)
	silence := time.NewTimer(watchSilence)
	defer silence.Stop()
	for {
		b, err := nextBatch(batches, silence)
		if err != nil {
			return fmt.Errorf("watch %s: %w", prefix, err)
		}
		retry.reset()
		f.Apply(Batch{Events: only(b.Events, wanted), Revision: b.Revision})
		silence.Reset(watchSilence) // the time that Apply took is not the watch's silence
	}
}

// nextBatch waits for the next batch. One that is there already is taken even if silence has run out.
func nextBatch(batches <-chan Batch, silence *time.Timer) (Batch, error) {
	var b Batch
	var open bool
	select {
	case b, open = <-batches:
	default:
		select {
		case b, open = <-batches:
		case <-silence.C:
			return Batch{}, errSilent
		}
	}
	if !open {
		return Batch{}, errEnded
	}
	return b, b.Err
}

// listAll lists several prefixes as of one revision.
func listAll(ctx context.Context, s Store, prefixes []string) (Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, followList)
	defer cancel()
	var all Listing
	for _, prefix := range prefixes {
		part, err := s.List(ctx, prefix, all.Revision)
		if err != nil {
			return Listing{}, fmt.Errorf("list %s: %w", prefix, err)
		}
		if part.Revision == 0 || all.Revision != 0 && part.Revision != all.Revision {
			return Listing{}, fmt.Errorf("list %s: %w", prefix, errors.New("store answered for another revision"))
		}
		all.Revision = part.Revision
		all.KVs = append(all.KVs, part.KVs...)
	}
	slices.SortFunc(all.KVs, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	// Prefixes may overlap; at one revision a key is the same in all of them.
	all.KVs = slices.CompactFunc(all.KVs, func(a, b KV) bool { return a.Key == b.Key })
	return all, nil
}

// only leaves out the events of keys below none of the prefixes.
func only(events []Event, prefixes []string) []Event {
	kept := events[:0:0]
	for _, e := range events {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(e.KV.Key, p) }) {
			kept = append(kept, e)
		}
	}
	return kept
}
