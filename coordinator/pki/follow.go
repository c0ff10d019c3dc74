package pki

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

const (
	lookEvery = time.Second     // how often the files are looked at
	settle    = 2 * time.Second // for how long changed files must have stood as they are, before they count
)

// follower reads the files of an authority again when they have changed. It is used by one
// goroutine at a time.
type follower struct {
	dir   string // of the authority
	parse func(raw) (Files, error)
	log   *slog.Logger

	source   raw       // in force
	pending  raw       // other files, that do not count yet
	since    time.Time // when they were first seen
	unusable string    // what is wrong with the files as they are now
}

// open reads the files for the first time.
func (f *follower) open() (Files, error) {
	source, err := readStable(f.dir)
	if err != nil {
		return Files{}, err
	}
	f.source, f.pending = source, source
	return f.parse(source)
}

// look reloads files that have changed, once they have been stable for a while: files are copied to
// a host one after the other, and an authority that is missing in the meantime must not count as
// one that is no longer trusted.
func (f *follower) look() (files Files, news bool) {
	source, err := readStable(f.dir)
	if err == nil && source == f.source {
		f.pending, f.unusable = source, ""
		return files, false
	}
	now := time.Now()
	if err == nil && source != f.pending {
		f.pending, f.since = source, now
		return files, false
	}
	if err == nil && now.Sub(f.since) < settle {
		return files, false
	}
	if err == nil {
		files, err = f.parse(source)
	}
	if err != nil {
		f.refuse(err)
		return files, false
	}
	f.source, f.unusable = source, ""
	return files, true
}

// refuse logs what is wrong with the files, once.
func (f *follower) refuse(err error) {
	if f.unusable == err.Error() {
		return
	}
	f.unusable = err.Error()
	var p *Problem
	next := ""
	if errors.As(err, &p) {
		next = p.Next
	}
	f.log.Error("certificate authority changed and cannot be used as it is: the one before stays in force",
		"dir", f.dir, "error", err, "next", next)
}

// follow looks at files until ctx ends.
func follow(ctx context.Context, look func()) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			look()
		}
	}
}
