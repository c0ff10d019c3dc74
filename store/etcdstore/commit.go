package etcdstore

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/store"
)

func (s *Store) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	req, err := request(txn)
	if err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	var resp *pb.TxnResponse
	err = write(ctx, func(opts ...grpc.CallOption) error {
		var err error
		resp, err = pb.NewKVClient(s.data.ActiveConnection()).Txn(ctx, req, opts...)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", subject(txn), err)
	}
	if !resp.Succeeded {
		return 0, fmt.Errorf("commit: %w", &store.ConflictError{Keys: failed(txn.Conditions, resp.Responses)})
	}
	return store.Revision(resp.Header.Revision), nil
}

// subject names a transaction by its first write: enough to find it in a log.
func subject(txn store.Txn) string {
	if more := len(txn.Writes) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", txn.Writes[0].Key, more)
	}
	return txn.Writes[0].Key
}

// request translates a transaction into etcd's form. If the conditions do not hold, it fetches
// their keys, without the values, at the revision at which they were compared: this shows which
// conditions failed.
func request(txn store.Txn) (*pb.TxnRequest, error) {
	if err := txn.Validate(); err != nil {
		return nil, err
	}
	req := &pb.TxnRequest{
		Success: make([]*pb.RequestOp, 0, len(txn.Writes)),
		Failure: make([]*pb.RequestOp, 0, len(txn.Conditions)),
	}
	for _, c := range txn.Conditions {
		req.Compare = append(req.Compare, compares(c)...)
		req.Failure = append(req.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: []byte(c.Key), KeysOnly: true},
		}})
	}
	for _, w := range txn.Writes {
		req.Success = append(req.Success, operation(w))
	}
	return req, nil
}

func compares(c store.Condition) []*pb.Compare {
	created := func(how pb.Compare_CompareResult, rev store.Revision) *pb.Compare {
		return &pb.Compare{
			Key: []byte(c.Key), Result: how, Target: pb.Compare_CREATE,
			TargetUnion: &pb.Compare_CreateRevision{CreateRevision: int64(rev)},
		}
	}
	var out []*pb.Compare
	switch {
	case c.Absent:
		return append(out, created(pb.Compare_EQUAL, 0))
	case c.Created != 0:
		out = append(out, created(pb.Compare_EQUAL, c.Created))
	case c.Modified == 0: // Exists alone: a revision would imply it
		return append(out, created(pb.Compare_GREATER, 0))
	}
	if c.Modified != 0 {
		out = append(out, &pb.Compare{
			Key: []byte(c.Key), Result: pb.Compare_EQUAL, Target: pb.Compare_MOD,
			TargetUnion: &pb.Compare_ModRevision{ModRevision: int64(c.Modified)},
		})
	}
	return out
}

func operation(w store.Write) *pb.RequestOp {
	if w.Delete {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(w.Key)},
		}}
	}
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{
		RequestPut: &pb.PutRequest{Key: []byte(w.Key), Value: w.Value, Lease: int64(w.Lease)},
	}}
}

// failed names the keys whose conditions do not hold, each once, in the order of the conditions.
func failed(conditions []store.Condition, responses []*pb.ResponseOp) []string {
	var keys, all []string
	seen := make(map[string]bool, len(conditions))
	for i, c := range conditions {
		all = append(all, c.Key)
		if i >= len(responses) || seen[c.Key] {
			continue
		}
		var kv store.KV
		if kvs := responses[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			kv = kvOf(kvs[0])
		}
		if !satisfied(c, kv) {
			seen[c.Key] = true
			keys = append(keys, c.Key)
		}
	}
	if len(keys) == 0 {
		return all // cannot be, but the contract promises names
	}
	return keys
}

// satisfied compares a condition with a key as it is; the zero KV is a key that is absent.
func satisfied(c store.Condition, kv store.KV) bool {
	exists := kv.Modified != 0
	if c.Absent {
		return !exists
	}
	return exists && (c.Modified == 0 || kv.Modified == c.Modified) && (c.Created == 0 || kv.Created == c.Created)
}
