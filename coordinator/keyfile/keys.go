package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold/leasehold/coordinator/sealed"
)

// Config says where the keys are.
type Config struct {
	Path string // the file; "": there is none
	// Text is the keys themselves, from the environment; with them no file is looked at.
	Text string
	// Optional: the file need not be there yet.
	Optional bool
}

// Keys are the keys as they are now.
type Keys struct {
	cfg Config
	log *slog.Logger

	mu   sync.Mutex
	ring sealed.Ring
	told string // the last thing that was wrong with the file
}

// lookEvery is how often the file is looked at.
const lookEvery = time.Second

// Open reads the keys.
func Open(cfg Config, log *slog.Logger) (*Keys, error) {
	k := &Keys{cfg: cfg, log: log}
	var err error
	if k.ring, err = k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// Ring is the keys that hold now.
func (k *Keys) Ring() sealed.Ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring
}

// Follow reads the file once a second, until the context ends, and reports when there are other
// keys.
func (k *Keys) Follow(ctx context.Context, changed func()) {
	if k.cfg.Text != "" || k.cfg.Path == "" {
		return
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if k.look() {
			changed()
		}
	}
}

// look reports whether there are other keys. A file that cannot be used, or is gone, changes
// nothing.
func (k *Keys) look() bool {
	ring, err := k.read()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && len(ring.IDs()) == 0 && len(k.ring.IDs()) > 0 {
		err = fmt.Errorf("key file %s has no keys any more", k.cfg.Path)
	}
	if err != nil {
		if k.told != err.Error() {
			k.told = err.Error()
			k.log.Warn("keys for secrets stay as they were", "error", err)
		}
		return false
	}
	k.told = ""
	if ring.Equal(k.ring) {
		return false
	}
	k.ring = ring
	k.log.Info("keys for secrets read anew", "keys", ring.IDs())
	return true
}

func (k *Keys) read() (sealed.Ring, error) {
	if k.cfg.Text != "" {
		ring, err := sealed.ParseRing(k.cfg.Text)
		if err != nil {
			return ring, fmt.Errorf("keys from the environment: %w", err)
		}
		return ring, nil
	}
	if k.cfg.Path == "" {
		return sealed.Ring{}, nil
	}
	ring, err := Read(k.cfg.Path)
	if k.cfg.Optional && errors.Is(err, fs.ErrNotExist) {
		return sealed.Ring{}, nil
	}
	return ring, err
}
