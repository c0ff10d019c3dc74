package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// follow shows what was found and then new entries, until ctx ends, which is the normal end.
func (c *Events) follow(ctx context.Context, inv *Invocation, raw []json.RawMessage, lines []string,
	at store.Revision,
) error {
	asRecords := inv.flags.Output == "json"
	if asRecords {
		for _, r := range raw {
			if err := output.JSONLine(inv.env.Stdout, r); err != nil {
				return err
			}
		}
	} else if _, err := io.WriteString(inv.env.Stdout, strings.Join(lines, "")); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.NewTimer(followSilence)
	defer quiet.Stop()
	for {
		var err error
		if at, err = c.followOnce(ctx, inv, at, quiet, asRecords); err != nil {
			return err
		}
	}
}

// followSilence is how long nothing may arrive, with progress due every second, before the command
// says so.
const followSilence = 5 * time.Second

// followOnce shows new entries until the watch ends, and returns the revision up to which
// everything was shown.
func (c *Events) followOnce(ctx context.Context, inv *Invocation, at store.Revision, quiet *time.Timer,
	asRecords bool,
) (store.Revision, error) {
	batches := inv.st.Watch(ctx, inv.keys().Of(store.KindEvents), at+1)
	for {
		select {
		case <-quiet.C:
			inv.warn("no answer from etcd for %s; new entries are shown when it is back", output.Span(followSilence))
		case b, open := <-batches:
			quiet.Reset(followSilence)
			switch {
			case ctx.Err() != nil:
				return at, ctx.Err()
			case !open:
				return at, inv.unreachable("follow the journal", store.ErrUnavailable)
			case errors.Is(b.Err, store.ErrCompacted):
				return inv.skipCompacted(ctx, at)
			case errors.Is(b.Err, store.ErrDenied):
				return at, inv.denied(ctx, b.Err, inv.reading(inv.keys().Prefix()))
			case b.Err != nil:
				return at, inv.unreachable("follow the journal", b.Err)
			}
			for _, e := range b.Events {
				if err := c.showEvent(inv, e, asRecords); err != nil {
					return at, err
				}
			}
			at = b.Revision
		}
	}
}

// skipCompacted continues from now when etcd no longer has the next revisions. The missed entries
// can still be read from the journal itself.
func (inv *Invocation) skipCompacted(ctx context.Context, at store.Revision) (store.Revision, error) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindLeader), 0)
	if err != nil {
		return at, err
	}
	inv.warn("entries of the revisions %d to %d may be missing here: etcd has compacted them; see leasehold events", at+1,
		l.Revision)
	return l.Revision, nil
}

func (c *Events) showEvent(inv *Invocation, e store.Event, asRecords bool) error {
	if e.Deleted {
		return nil
	}
	entry, err := store.Decode[store.JournalEntry](e.KV)
	if err != nil {
		return err
	}
	if !c.concerns(entry.Record) {
		return nil
	}
	if asRecords {
		return output.JSONLine(inv.env.Stdout, asJSON(e.KV.Value))
	}
	_, err = io.WriteString(inv.env.Stdout, eventLine(inv.screen(), entry.Record, inv.env.Now(), inv.wide()))
	return err
}
