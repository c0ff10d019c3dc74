package services

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
)

// KeyFile is the flag for the keys with which secrets are encrypted (SEC-6).
type KeyFile struct {
	SecretsKey string `help:"File with the keys for secrets (default: ${secrets_key}); LEASEHOLD_SECRETS_KEY may hold the keys themselves." env:"LEASEHOLD_SECRETS_KEY_FILE" placeholder:"FILE"`
}

// keys returns a coordinator's keys.
func (f KeyFile) keys(h *Host, log *slog.Logger) (*keyfile.Keys, error) {
	cfg := keyfile.Config{Path: f.SecretsKey}
	if cfg.Path == "" {
		cfg = keyfile.Config{Path: keyfile.Usual, Text: h.SecretsKey, Optional: true}
	}
	k, err := keyfile.Open(cfg, log)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem("leasehold secret new-key "+cfg.Path, "%s", err)
	case err != nil:
		return nil, problem("leasehold coordinator --help", "%s", err)
	}
	return k, nil
}

// devKeys returns dev's own keys, which are created at the first start.
func devKeys(dir string, log *slog.Logger) (*keyfile.Keys, error) {
	path := DevKeyFile(dir)
	err := keyfile.Create(path, encryption.Ring{}.With(encryption.NewKey()))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, problem(DirectoryNext(err), "data directory %s: %s", dir,
			err)
	}
	k, err := keyfile.Open(keyfile.Config{Path: path}, log)
	if err != nil {
		return nil, problem("repair the file, or choose another --data-dir: without its keys no secret can be read",
			"%s", err)
	}
	return k, nil
}
