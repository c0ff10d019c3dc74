package etcdstore

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
)

// listPage is how many keys one request asks for: 100,000 records take 1.0s in pages of this size
// and 3.5s in pages of 1,000.
const listPage = 10_000

// listRestarts is how often List of the newest state starts over when its revision is compacted
// under it.
const listRestarts = 3

func (s *Store) Get(ctx context.Context, key string) (store.KV, error) {
	resp, err := s.data.Get(ctx, key)
	if err != nil {
		return store.KV{}, fmt.Errorf("get %s: %w", key, readError(ctx, err))
	}
	if len(resp.Kvs) == 0 {
		return store.KV{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	return kvOf(resp.Kvs[0]), nil
}

func (s *Store) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	for attempt := 0; ; attempt++ {
		listing, err := s.listOnce(ctx, prefix, at)
		if err == nil {
			return listing, nil
		}
		if at == 0 && errors.Is(err, store.ErrCompacted) && attempt < listRestarts {
			continue // the state that the first page showed is gone: any newer one will do
		}
		return store.Listing{}, fmt.Errorf("list %s: %w", prefix, err)
	}
}

func (s *Store) listOnce(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	listing := store.Listing{Revision: at}
	for from, more := "", true; more; {
		resp, err := s.page(ctx, prefix, from, 0, listing.Revision)
		if err != nil {
			return store.Listing{}, err
		}
		if listing.Revision == 0 {
			listing.Revision = store.Revision(resp.Header.Revision)
		}
		if listing.KVs == nil {
			listing.KVs = make([]store.KV, 0, resp.Count)
		}
		for _, kv := range resp.Kvs {
			listing.KVs = append(listing.KVs, kvOf(kv))
		}
		from, more = behind(resp)
	}
	return listing, nil
}

// ListPart returns one of the requests that List makes.
func (s *Store) ListPart(ctx context.Context, prefix, from string, most int, at store.Revision) (store.Part, error) {
	resp, err := s.page(ctx, prefix, from, most, at)
	if err != nil {
		return store.Part{}, fmt.Errorf("list %s: %w", prefix, err)
	}
	part := store.Part{
		Listing: store.Listing{KVs: make([]store.KV, len(resp.Kvs)), Revision: at},
		Behind:  int(resp.Count) - len(resp.Kvs),
	}
	if at == 0 {
		part.Revision = store.Revision(resp.Header.Revision)
	}
	for i, kv := range resp.Kvs {
		part.KVs[i] = kvOf(kv)
	}
	part.Next, _ = behind(resp)
	return part, nil
}

// page reads keys below a prefix, starting at one: as many as fit an answer, and at most so many
// unless most is 0.
func (s *Store) page(ctx context.Context, prefix, from string, most int, at store.Revision) (*clientv3.GetResponse,
	error,
) {
	begin, end := rangeOf(prefix)
	limit := int64(listPage)
	if most > 0 {
		limit = min(limit, int64(most))
	}
	resp, err := s.data.Get(ctx, max(begin, from), clientv3.WithRange(end), clientv3.WithLimit(limit),
		clientv3.WithRev(int64(at)))
	if err != nil {
		return nil, readError(ctx, err)
	}
	return resp, nil
}

// behind returns where the page after this one begins, if there is one.
func behind(resp *clientv3.GetResponse) (from string, more bool) {
	if !resp.More || len(resp.Kvs) == 0 {
		return "", false
	}
	return string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00", true
}

// rangeOf returns what etcd calls the keys below a prefix. The empty prefix is every key.
func rangeOf(prefix string) (from, end string) {
	if prefix == "" {
		return "\x00", "\x00"
	}
	return prefix, clientv3.GetPrefixRangeEnd(prefix)
}

func kvOf(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key:      string(kv.Key),
		Value:    kv.Value,
		Created:  store.Revision(kv.CreateRevision),
		Modified: store.Revision(kv.ModRevision),
		Lease:    store.LeaseID(kv.Lease),
	}
}
