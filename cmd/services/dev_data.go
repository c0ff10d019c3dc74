package services

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/provider/durable"
)

// DevDataDir is dev's default data directory.
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

// DevSettings returns the file in the data directory of a running dev with the settings by which
// commands reach it.
func DevSettings(dataDir string) string { return filepath.Join(dataDir, "config.yaml") }

// DevKeyFile returns the file in the data directory with dev's keys for secrets.
func DevKeyFile(dataDir string) string { return filepath.Join(dataDir, "secrets.key") }

// listenFile holds the coordinator's last address for agents, requested or chosen.
func listenFile(dir string) string { return filepath.Join(dir, "listen") }

// makeDataDir finds the data directory, and creates it.
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
		return "", problem(DirectoryNext(err), "data directory: %s", err)
	}
	return dir, nil
}

// isUsual reports whether commands find the settings by themselves.
func (w *devWorld) isUsual() bool {
	usual, err := DevDataDir()
	return err == nil && DevSettings(w.dir) == DevSettings(usual)
}

// DirectoryNext is what to do about a data directory in which err kept a file from being written.
func DirectoryNext(err error) string {
	if durable.Full(err) {
		return "free space on its disk, then the same command again"
	}
	return "choose a directory that you may write to, with --data-dir"
}
