package services

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/provider/durable"
)

// DevDataDir is where a dev that is told nothing else on its command line keeps everything.
func DevDataDir() (string, error) {
	if dir := os.Getenv("LEASEHOLD_DATA_DIR"); dir != "" {
		return dir, nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "leasehold", "dev"), nil
}

// DevSettings is where, in its data directory, a dev that runs leaves the settings with which
// commands reach it.
func DevSettings(dataDir string) string { return filepath.Join(dataDir, "config.yaml") }

// DevKeyFile is where, in its data directory, dev keeps the keys for secrets.
func DevKeyFile(dataDir string) string { return filepath.Join(dataDir, "secrets.key") }

// listenFile holds where agents found the coordinator the last time, whether asked for or not.
func listenFile(dir string) string { return filepath.Join(dir, "listen") }

// makeDataDir finds the data directory, and makes it.
func (d *Dev) makeDataDir() (dir string, err error) {
	if dir = d.DataDir; dir == "" {
		if dir, err = DevDataDir(); err != nil {
			return "", problem("give a directory with --data-dir", "no data directory: %s", err)
		}
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = durable.MakeDir(dir)
	}
	if errors.Is(err, durable.ErrShared) {
		return "", problem("run dev as the user whose directory it is, or choose one of your own, with --data-dir",
			"data directory: %s", err)
	}
	if err != nil {
		return "", problem("choose a directory that you may write to, with --data-dir", "data directory: %s", err)
	}
	return dir, nil
}

// isUsual reports whether commands find the settings by themselves.
func (w *devWorld) isUsual() bool {
	usual, err := DevDataDir()
	return err == nil && DevSettings(w.dir) == DevSettings(usual)
}
