package server

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// longestWhy is how much is kept of why a part ended, and of what the operator can do, in bytes.
const longestWhy = 300

// ends records in the data directory which parts ended by themselves, for the replica, which
// announces it. A record that cannot be written or read costs no more than that.
type ends struct {
	mu    sync.Mutex
	place Place
	log   *slog.Logger
	now   func() time.Time
}

// add records an end.
func (e *ends) add(part, why, next string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	end := store.PartEnds{
		Part: part, Last: e.now().UTC().Truncate(time.Second), Why: clip(why), Next: clip(next),
	}
	text, err := json.MarshalIndent(store.EndedAgain(e.place.ended(), end), "", "  ")
	if err == nil {
		err = durable.Replace(e.place.ends(), append(text, '\n'), 0o600)
	}
	if err != nil {
		e.log.Warn("status will not know that a part of the server ended", "part", part, "error", err)
	}
}

func (p Place) ends() string { return p.file("ended.json") }

// ended returns which parts ended by themselves.
func (p Place) ended() (all []store.PartEnds) {
	text, err := os.ReadFile(p.ends())
	if err != nil || json.Unmarshal(text, &all) != nil {
		return nil
	}
	return all
}

func clip(text string) string {
	text = reason.OneLine(text)
	if len(text) > longestWhy {
		text = strings.ToValidUTF8(text[:longestWhy], "") + "…"
	}
	return text
}
