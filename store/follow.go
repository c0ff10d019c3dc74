package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Follower receives what a prefix holds and how it changes. Its methods are called one at a time,
// in the store's order.
type Follower interface {
	// Part passes a part of a listing at one revision. All its parts together are ordered by key,
	// and hold no key twice. A listing counts from Reset on, and is void if Interrupted comes
	// first.
	Part([]KV)
	// Reset ends a listing: the parts since the last interruption, or since the beginning, are all
	// keys at that revision. They replace all that the follower had before.
	Reset(Revision)
	// Apply receives the changes since the revision of the last Reset or Apply, up to the batch's
	// own. A batch without events means that nothing changed. It never has an Err.
	Apply(Batch)
	// Interrupted means that changes may be missed from now on, and why. The next call is a Reset,
	// or another Interrupted if listing again failed.
	Interrupted(error)
}

// Reasons for an interruption that the watch itself does not give.
var (
	errSilent = fmt.Errorf("watch was silent for %s: %w", WatchSilence, ErrUnavailable)
	errEnded  = fmt.Errorf("watch ended: %w", ErrUnavailable)
)

// The times of following.
const (
	followRetryFirst = 50 * time.Millisecond
	maxFollowRetry   = 2 * time.Second
	followPart       = 30 * time.Second // one part of a listing, of which a quiet etcd answers some ten a second
)

// Follow keeps f informed of everything below the prefixes in wanted that lie in prefix (of
// everything below prefix if wanted is empty), until ctx ends; it returns why ctx ended.
//
// The wanted prefixes are listed at one revision. From then on one watch covers the whole of
// prefix, so that changes of different kinds of keys come in the order in which they happened.
// Changes of other keys are left out, yet the revision moves with them. Only the listing needs the
// wanted prefixes: the journal may hold 100,000 entries that are not needed. While one part is
// read, f handles the one before it: the stored form is never in memory as a whole. A listing may
// take any time while its parts arrive, so that millions of keys can be read from a slow store,
// too. If the store forgets the revision meanwhile, f is interrupted, and everything is listed
// again.
//
// When the watch fails, ends, or is silent for 3s although progress is due every second (SAFE-3), f
// is interrupted, and everything is listed again, after 50ms at first and up to 2s when that keeps
// failing.
func Follow(ctx context.Context, s Store, prefix string, wanted []string, f Follower) error {
	if len(wanted) == 0 {
		wanted = []string{prefix}
	}
	retry := backoff{first: followRetryFirst, most: maxFollowRetry}
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

// followOnce lists and watches until that fails. It resets retry once the watch has delivered
// something.
func followOnce(ctx context.Context, s Store, prefix string, wanted []string, f Follower, retry *backoff) error {
	at, err := listAll(ctx, s, wanted, f.Part)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	batches := s.Watch(ctx, prefix, at+1)
	defer func() {
		cancel()
		for range batches { // until it is closed: nothing of the watch is left behind
		}
	}()
	f.Reset(at)
	err = eachBatch(batches, func(b Batch) error {
		retry.reset()
		f.Apply(Batch{Events: only(b.Events, wanted), Revision: b.Revision})
		return nil
	})
	return fmt.Errorf("watch %s: %w", prefix, err)
}

// Changes hands over what changes below a prefix, from a revision on. It returns when the watch
// fails, ends, or is silent for 3s although progress is due every second (SAFE-3), and with the
// error that apply returns.
func Changes(ctx context.Context, s Store, prefix string, from Revision, apply func(Batch) error) error {
	ctx, cancel := context.WithCancel(ctx)
	batches := s.Watch(ctx, prefix, from)
	defer func() {
		cancel()
		for range batches { // until it is closed: nothing of the watch is left behind
		}
	}()
	return eachBatch(batches, apply)
}

// eachBatch hands over what a watch delivers, until that fails.
func eachBatch(batches <-chan Batch, apply func(Batch) error) error {
	silence := time.NewTimer(WatchSilence)
	defer silence.Stop()
	for {
		b, err := nextBatch(batches, silence)
		if err == nil {
			err = apply(b)
		}
		if err != nil {
			return err
		}
		silence.Reset(WatchSilence) // the time that apply took is not the watch's silence
	}
}

// nextBatch waits for the next batch. One that is there already is taken even if silence has run
// out.
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

// listAll lists several prefixes as of one revision, and hands over each part while the next is
// read. It returns that revision.
func listAll(ctx context.Context, s Store, prefixes []string, take func([]KV)) (Revision, error) {
	parts := make(chan []KV)
	var at Revision
	var failed error
	go func() {
		defer close(parts)
		read, begun := 0, time.Now()
		for _, prefix := range apart(prefixes) {
			for from, more := "", true; more; more = from != "" {
				var part Part
				if part, failed = listPart(ctx, s, prefix, from, at); failed != nil {
					if errors.Is(failed, ErrCompacted) {
						failed = fmt.Errorf("after %d keys and %s, all is read again: %w", read,
							time.Since(begun).Round(time.Millisecond), failed)
					}
					return
				}
				at, from = part.Revision, part.Next
				read += len(part.KVs)
				parts <- part.KVs
			}
		}
	}()
	for kvs := range parts {
		take(kvs)
	}
	return at, failed
}

// listPart reads a part of a prefix at a revision, the newest for 0, within a limit of its own.
func listPart(ctx context.Context, s Store, prefix, from string, at Revision) (Part, error) {
	limited, cancel := context.WithTimeout(ctx, followPart)
	defer cancel()
	part, err := s.ListPart(limited, prefix, from, 0, at)
	if err == nil && (part.Revision == 0 || at != 0 && part.Revision != at) {
		err = fmt.Errorf("list %s: store answered for another revision", prefix)
	}
	return part, err
}

// apart returns the prefixes in order, without those that are within another one. Their keys, one
// prefix after the other, are then in order.
func apart(prefixes []string) (out []string) {
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(out) == 0 || !strings.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}
	return out
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
