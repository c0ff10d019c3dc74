package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// ErrExists: there is a shard of this name already.
var ErrExists = errors.New("the shard exists already")

// NewShard makes the record of a new shard. An empty ID stands for a random one.
func NewShard(name, id string) (Shard, error) {
	if id == "" {
		random := make([]byte, 8)
		if _, err := rand.Read(random); err != nil {
			return Shard{}, err
		}
		id = hex.EncodeToString(random)
	}
	return Shard{
		Schema: Schema, ID: id, Name: name, Created: time.Now().UTC(), Generation: 1,
		Settings: DefaultShardSettings(),
	}, nil
}

// CreateShard writes a shard's record, unless there is one: then it fails with ErrExists. An answer
// that was lost is cleared up by reading, so it may be repeated.
func CreateShard(ctx context.Context, s Store, keys Keys, shard Shard) error {
	key := keys.Shard()
	_, err := s.Commit(ctx, Txn{Conditions: []Condition{Absent(key)}, Writes: []Write{Put(key, Encode(shard))}})
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknown):
		return fmt.Errorf("create shard %s: %w", shard.Name, err)
	}
	kv, err := s.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("create shard %s: %w", shard.Name, err)
	}
	if v, err := Decode[Shard](kv); err == nil && v.Record.ID == shard.ID {
		return nil // by ourselves
	}
	return ErrExists
}

// LeaderRecords counts the keys that only a leader can have written for a shard, and returns their
// prefix. A shard with such keys and without a record of its own has lost its record.
func LeaderRecords(ctx context.Context, s Store, keys Keys) (n int, kind string, err error) {
	for _, kind := range []string{KindInstances, KindStatus} {
		first, err := s.ListPart(ctx, keys.Of(kind), "", 1, 0)
		if err != nil {
			return 0, "", err
		}
		if n := len(first.KVs) + first.Behind; n > 0 {
			return n, kind, nil
		}
	}
	return 0, "", nil
}
