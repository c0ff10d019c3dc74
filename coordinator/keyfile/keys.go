package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/reload"
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
	*reload.Files[string, encryption.Ring]
	cfg Config
	log *slog.Logger
}

// Open reads the keys.
func Open(cfg Config, log *slog.Logger) (*Keys, error) {
	files, err := reload.Open(reload.Config[string, encryption.Ring]{
		Read: cfg.read, Parse: cfg.parse,
		Failed: func(err error) { log.Warn("keys for secrets stay as they were", "error", err) },
	})
	if err != nil {
		return nil, err
	}
	return &Keys{files, cfg, log}, nil
}

// Ring returns the keys in force.
func (k *Keys) Ring() encryption.Ring { return k.Latest() }

// Follow reads the file once a second, until the context ends, and reports when there are other
// keys.
func (k *Keys) Follow(ctx context.Context, changed func()) {
	if k.cfg.Text != "" || k.cfg.Path == "" {
		return
	}
	k.Run(ctx, func() {
		k.log.Info("keys for secrets read again", "keys", k.Ring().IDs())
		changed()
	})
}

func (c Config) read() (string, error) {
	if c.Text != "" || c.Path == "" {
		return c.Text, nil
	}
	text, err := readFile(c.Path)
	if c.Optional && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return text, err
}

func (c Config) parse(text string, before encryption.Ring) (encryption.Ring, error) {
	switch {
	case c.Text != "":
		ring, err := encryption.ParseRing(text)
		if err != nil {
			return ring, fmt.Errorf("keys from the environment: %w", err)
		}
		return ring, nil
	case text == "" && len(before.IDs()) == 0 && (c.Path == "" || c.Optional):
		return encryption.Ring{}, nil
	}
	ring, err := parse(c.Path, text)
	if err == nil && len(ring.IDs()) == 0 && len(before.IDs()) > 0 {
		err = fmt.Errorf("key file %s has no keys any longer", c.Path)
	}
	return ring, err
}
