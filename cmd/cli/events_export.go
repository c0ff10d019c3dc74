package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/eventfile"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// EventsExport is the command events export.
type EventsExport struct {
	Since Ago `help:"How far back to go, such as 24h or 30d." default:"30d" placeholder:"DURATION"`
}

// Run writes the file as it reads, so that it needs little memory.
func (c *EventsExport) Run(ctx context.Context, inv *Invocation) error {
	if c.Since <= 0 {
		return failure(Usage, "leasehold events export --since 30d > FILE", "--since: must be more than 0")
	}
	if inv.env.StdoutTerminal {
		return failure(Usage, "leasehold events export --since 30d > FILE",
			"the file goes to standard output, which is a terminal")
	}
	shard, err := inv.readShard(ctx)
	if err != nil {
		return err
	}
	begins, err := inv.pastBegins(ctx, shard.Record)
	if err != nil {
		return err
	}
	now := inv.env.Now().UTC()
	from := now.Add(-time.Duration(c.Since))
	w, err := eventfile.NewWriter(inv.env.Stdout, eventfile.Head{
		Shard: inv.flags.Shard, From: from, To: now, Created: begins,
		Kept: shard.Record.Settings.WithDefaults().EventsKept, Program: inv.env.Version,
		Settings: shard.Record.Settings,
	})
	if err != nil {
		return err
	}
	if err := c.now(ctx, inv, w); err != nil {
		return err
	}
	shown, written := inv.newProgress(0), 0
	defer shown.end()
	for _, part := range []struct {
		kind, from string
		write      func([]byte) error
	}{
		{store.KindDays, inv.keys().DayDone(from.Format(store.DayLayout)), w.Day},
		{store.KindLoads, inv.keys().LoadsFrom(from.Add(-review.Before)), w.Load},
		{store.KindEvents, inv.keys().EventsFrom(from.Add(-review.Before)), w.Event},
	} {
		err := inv.appendOnly(ctx, part.kind, part.from, func(kv store.KV) error {
			if inv.keys().Readable(kv) != nil {
				return nil //nolint:nilerr // status names it
			}
			if part.kind == store.KindDays && !strings.Contains(strings.TrimPrefix(kv.Key, inv.keys().Of(part.kind)), "/") {
				return nil // end of the day that is summarized
			}
			written++
			shown.show(func() string { return fmt.Sprintf("%d records written", written) })
			return part.write(kv.Value)
		})
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// now writes the present groups and instances.
func (c *EventsExport) now(ctx context.Context, inv *Invocation, w *eventfile.Writer) error {
	groups, at, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if in := g.Status.Record.Accepted; in != nil {
			if err := w.Group(*in); err != nil {
				return err
			}
		}
	}
	listing, err := inv.list(ctx, inv.keys().Of(store.KindInstances), at)
	if err != nil {
		return err
	}
	for _, i := range readable[store.Instance](listing.KVs) {
		if err := w.Instance(i); err != nil {
			return err
		}
	}
	return nil
}

// eventFile reads a file of events; - is standard input.
func (inv *Invocation) eventFile(name string) (*eventfile.Content, error) {
	in, closed := inv.env.Stdin, func() error { return nil }
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, failure(Usage, "leasehold events export --since 30d > FILE", "--from %s: %s", name, bare(err))
		}
		in, closed = io.Reader(f), f.Close
	}
	shown := inv.newProgress(0)
	content, err := eventfile.Read(in, func(lines int) {
		shown.show(func() string { return fmt.Sprintf("%d lines read", lines) })
	})
	shown.end()
	_ = closed() // it was only read
	if wrong := (*eventfile.Error)(nil); errors.As(err, &wrong) {
		return nil, failure(Failed, "leasehold events export --since 30d > FILE", "--from %s: %s", name, wrong)
	}
	return content, err
}
