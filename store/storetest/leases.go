package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
)

// The TTLs of the tests: one that does not end meanwhile, and the shortest that every store grants.
const (
	minuteTTL = 2 * time.Minute
	shortTTL  = 2 * time.Second
)

func (b *bench) putLeased(name string, lease store.LeaseID) store.Revision {
	b.Helper()
	return b.commit(store.PutLeased(b.key(name), []byte(name), lease))
}

// awaitDeleted reads a watch until a key is deleted, and returns the revision of that and all
// events up to it.
func (b *bench) awaitDeleted(watch <-chan store.Batch, name string) (store.Revision, []store.Event) {
	b.Helper()
	var events []store.Event
	for {
		batch := b.next(watch)
		if batch.Err != nil {
			b.Fatal(batch.Err)
		}
		events = append(events, batch.Events...)
		for _, e := range batch.Events {
			if e.Deleted && e.KV.Key == b.key(name) {
				return e.KV.Modified, events
			}
		}
	}
}

func testGrant(b *bench) {
	for _, ttl := range []time.Duration{time.Millisecond, shortTTL, 2500 * time.Millisecond, minuteTTL} {
		before := time.Now()
		lease := b.grant(ttl)
		if lease.TTL < ttl {
			b.Errorf("asked for %s, got %s", ttl, lease.TTL)
		}
		if lease.ID == 0 || lease.From.Before(before) || lease.From.After(time.Now()) {
			b.Errorf("granted %+v", lease)
		}
		if err := b.Revoke(b.ctx, lease.ID); err != nil {
			b.Error(err)
		}
	}
	first, second := b.grant(minuteTTL), b.grant(minuteTTL)
	if first.ID == second.ID {
		b.Errorf("two leases are %s", first.ID)
	}
	b.putLeased("a", first.ID)
	if kv := b.get("a"); kv.Lease != first.ID {
		b.Errorf("a key on lease %s says %+v", first.ID, kv)
	}
	if kv := b.list(0).KVs[0]; kv.Lease != first.ID {
		b.Errorf("a listed key on lease %s says %+v", first.ID, kv)
	}
	for _, lease := range []store.Lease{first, second} {
		if err := b.Revoke(b.ctx, lease.ID); err != nil {
			b.Error(err)
		}
	}
}

func testLeaseGone(b *bench) {
	lease := b.grant(minuteTTL)
	if err := b.Revoke(b.ctx, lease.ID); err != nil {
		b.Fatal(err)
	}
	for name, id := range map[string]store.LeaseID{"revoked": lease.ID, "never granted": 0x1234_5678_9abc} {
		if _, err := b.Renew(b.ctx, id); !errors.Is(err, store.ErrLeaseGone) {
			b.Errorf("renew a lease that was %s: %v", name, err)
		}
		if _, err := b.Commit(b.ctx, store.Txn{Writes: []store.Write{
			store.Put(b.key("a"), nil), store.PutLeased(b.key("b"), nil, id),
		}}); !errors.Is(err, store.ErrLeaseGone) {
			b.Errorf("put on a lease that was %s: %v", name, err)
		}
	}
	if kvs := b.list(0).KVs; len(kvs) > 0 {
		b.Errorf("a transaction with a lease that is gone wrote %+v", kvs)
	}
}

func testRevoke(b *bench) {
	lease, other := b.grant(minuteTTL), b.grant(minuteTTL)
	for _, name := range []string{"c", "a", "b"} {
		b.putLeased(name, lease.ID)
	}
	b.putLeased("other", other.ID)
	rev := b.put("durable", "")
	watch := b.Watch(b.ctx, b.prefix, rev+1)
	for range 2 { // the second time it is gone, which is no error
		if err := b.Revoke(b.ctx, lease.ID); err != nil {
			b.Fatal(err)
		}
	}
	at, events := b.awaitDeleted(watch, "a")
	var deleted []string
	for _, e := range events {
		if !e.Deleted || e.KV.Modified != at {
			b.Errorf("the lease's keys go with %+v, want all at %d", e, at)
		}
		deleted = append(deleted, e.KV.Key)
	}
	slices.Sort(deleted)
	if want := []string{b.key("a"), b.key("b"), b.key("c")}; !slices.Equal(deleted, want) {
		b.Errorf("revoked with %v, want %v", deleted, want)
	}
	b.get("durable")
	b.get("other")
	if err := b.Revoke(b.ctx, 0x1234_5678_9abc); err != nil {
		b.Errorf("revoke a lease that never was: %v", err)
	}
	if err := b.Revoke(b.ctx, other.ID); err != nil {
		b.Error(err)
	}
}

func testAttach(b *bench) {
	first, second := b.grant(minuteTTL), b.grant(minuteTTL)
	for _, name := range []string{"stays", "detached", "moved", "recreated", "renewed"} {
		b.putLeased(name, first.ID)
	}
	b.put("detached", "by a put without a lease")
	b.putLeased("moved", second.ID)
	b.commit(store.Delete(b.key("recreated")))
	b.put("recreated", "")
	b.putLeased("renewed", first.ID)
	b.put("attached", "")
	b.putLeased("attached", first.ID)
	for name, want := range map[string]store.LeaseID{
		"stays": first.ID, "detached": 0, "moved": second.ID,
		"recreated": 0, "attached": first.ID,
	} {
		if kv := b.get(name); kv.Lease != want {
			b.Errorf("%s is on lease %s, want %s", name, kv.Lease, want)
		}
	}
	names := func() string {
		var out []string
		for _, kv := range b.list(0).KVs {
			out = append(out, kv.Key[len(b.prefix):])
		}
		return fmt.Sprint(out)
	}
	for _, step := range []struct {
		revoke store.Lease
		want   string
	}{{first, "[detached moved recreated]"}, {second, "[detached recreated]"}} {
		if err := b.Revoke(b.ctx, step.revoke.ID); err != nil {
			b.Fatal(err)
		}
		if got := names(); got != step.want {
			b.Errorf("left: %s, want %s", got, step.want)
		}
	}
}

func testExpiry(b *bench) {
	lease := b.grant(shortTTL)
	b.putLeased("a", lease.ID)
	b.putLeased("b", lease.ID)
	rev := b.put("durable", "")
	watch := b.Watch(b.ctx, b.prefix, rev+1)
	at, events := b.awaitDeleted(watch, "a")
	if now := time.Now(); now.Before(lease.Ends()) {
		b.Errorf("the lease ended %s before its time", lease.Ends().Sub(now))
	}
	if len(events) != 2 || events[0].KV.Modified != at || events[1].KV.Modified != at {
		b.Errorf("the lease ended with %+v", events)
	}
	b.absent("a")
	b.absent("b")
	b.get("durable")
	if _, err := b.Renew(b.ctx, lease.ID); !errors.Is(err, store.ErrLeaseGone) {
		b.Errorf("renew a lease that expired: %v", err)
	}
}

// testRenew renews one of two leases until both would have ended. A machine so slow that even the
// renewals come too late makes it try again.
func testRenew(b *bench) {
	for attempt := 0; ; attempt++ {
		renewed, left := b.grant(2*shortTTL), b.grant(2*shortTTL)
		b.putLeased("renewed", renewed.ID)
		rev := b.putLeased("left", left.ID)
		watch := b.Watch(b.ctx, b.prefix, rev+1)
		if b.renewUntilDeleted(watch, renewed, "left") {
			b.get("renewed")
			if err := b.Revoke(b.ctx, renewed.ID); err != nil {
				b.Error(err)
			}
			return
		}
		b.Logf("attempt %d: this machine is too slow to renew in time", attempt)
	}
}

// renewUntilDeleted renews a lease until the key of another is deleted. It is false if a renewal
// came too late.
func (b *bench) renewUntilDeleted(watch <-chan store.Batch, lease store.Lease, name string) bool {
	b.Helper()
	every := time.NewTicker(shortTTL / 4)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			before := time.Now()
			next, err := b.Renew(b.ctx, lease.ID)
			if errors.Is(err, store.ErrLeaseGone) && !time.Now().Before(lease.Ends()) {
				return false
			}
			if err != nil {
				b.Fatalf("renew a lease that ends in %s: %v", time.Until(lease.Ends()), err)
			}
			if next.ID != lease.ID || next.TTL != lease.TTL || next.From.Before(before) || next.From.After(time.Now()) {
				b.Errorf("renewed as %+v, it was %+v", next, lease)
			}
			lease = next
		case batch, open := <-watch:
			if !open || batch.Err != nil {
				b.Fatalf("watch ended: %v", batch.Err)
			}
			for _, e := range batch.Events {
				if e.Deleted && e.KV.Key == b.key(name) {
					return true
				}
			}
		case <-b.ctx.Done():
			b.Fatal("the lease that is not renewed does not end")
		}
	}
}

// testExpired: renewals of leases that have ended fail by themselves, and delay no others.
func testExpired(b *bench) {
	const many = 200
	expired := make([]store.Lease, many)
	for i := range expired {
		expired[i] = b.grant(shortTTL)
	}
	healthy := b.grant(minuteTTL)
	rev := b.putLeased("last", expired[many-1].ID)
	b.awaitDeleted(b.Watch(b.ctx, b.prefix, rev+1), "last")
	var group sync.WaitGroup
	for _, lease := range expired {
		group.Go(func() {
			if _, err := b.Renew(b.ctx, lease.ID); !errors.Is(err, store.ErrLeaseGone) {
				b.Errorf("renew a lease that expired: %v", err)
			}
		})
	}
	for range 20 {
		if _, err := b.Renew(b.ctx, healthy.ID); err != nil {
			b.Errorf("renew a healthy lease beside expired ones: %v", err)
		}
	}
	group.Wait()
	if err := b.Revoke(b.ctx, healthy.ID); err != nil {
		b.Error(err)
	}
}
