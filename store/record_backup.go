package store

import (
	"context"
	"errors"
	"time"
)

// Backup says when the shard was backed up last (DAY-2).
type Backup struct {
	Schema   int       `json:"schema"`
	At       time.Time `json:"at,omitzero"`        // zero: none succeeded yet
	Revision Revision  `json:"revision,omitempty"` // of the content
	By       string    `json:"by,omitempty"`       // the replica or operator
	To       string    `json:"to,omitempty"`       // the file or command
	// Failure is the last scheduled backup that failed, until the same replica succeeds.
	Failure *BackupFailure `json:"failure,omitempty"`
}

// BackupFailure is a scheduled backup that failed.
type BackupFailure struct {
	At  time.Time `json:"at"`
	By  string    `json:"by"`
	Why string    `json:"why"`
	// Full: the disk of its directory is full.
	Full bool `json:"full,omitempty"`
}

// NoteBackup records a successful backup or, with Failure set, a failed one, beside earlier ones.
// It never replaces a later success by an earlier one, by etcd's revision: a clock that made the
// last one may have been ahead (SAFE-13).
func NoteBackup(ctx context.Context, s Store, keys Keys, news Backup) error {
	key := keys.Backup()
	for {
		kv, err := s.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		old, err := Decode[Backup](kv)
		if errors.Is(err, ErrSchema) {
			return err
		}
		_, err = s.Commit(ctx, Txn{
			Conditions: []Condition{At(key, kv.Modified)},
			Writes:     []Write{Put(key, Encode(old.Record.with(news)))},
		})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

func (b Backup) with(news Backup) Backup {
	b.Schema = Schema
	if news.Failure != nil {
		b.Failure = news.Failure
		return b
	}
	if b.Failure != nil && b.Failure.By == news.By {
		b.Failure = nil
	}
	if news.Revision >= b.Revision {
		b.At, b.Revision, b.By, b.To = news.At, news.Revision, news.By, news.To
	}
	return b
}
