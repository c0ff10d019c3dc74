package store_test

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// A record of a backup or of a webhook that is not one is said to be unreadable, and named.
//
// proves SAFE-16
func TestReadableRecordsOfBackupsAndWebhooks(t *testing.T) {
	keys := store.KeysOf("test")
	for _, c := range []struct {
		key   string
		good  any
		wrong string
	}{
		{keys.Backup(), store.Backup{Schema: store.Schema, By: "replica"}, `{"schema": 1, "by": 7}`},
		{keys.Webhook("pager"), store.Webhook{Schema: store.Schema, Name: "pager"}, `{"schema": 1, "name": 7}`},
	} {
		if err := keys.Readable(store.KV{Key: c.key, Value: store.Encode(c.good)}); err != nil {
			t.Error(err)
		}
		var unreadable *store.UnreadableError
		err := keys.Readable(store.KV{Key: c.key, Value: []byte(c.wrong)})
		if !errors.As(err, &unreadable) || unreadable.Key != c.key {
			t.Errorf("%s of %s: %v", c.key, c.wrong, err)
		}
	}
}
