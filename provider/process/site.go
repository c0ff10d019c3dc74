package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold/leasehold/provider/durable"
)

// siteFile names the directory, and never changes: another host has another directory, and does not
// see the machines in this one.
const siteFile = ".site"

// siteOf returns the name of a directory for machines, and gives it one if it has none. Of
// providers that do so at the same time one wins.
func siteOf(dir string) (string, error) {
	path := filepath.Join(dir, siteFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = nameDir(dir, path); err == nil {
			text, err = os.ReadFile(path)
		}
	}
	if err != nil {
		return "", err
	}
	if site := strings.TrimSpace(string(text)); site != "" {
		return site, nil
	}
	return "", fmt.Errorf("%s is empty: it names this directory; remove it if there are no machines", path)
}

func nameDir(dir, path string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, newDir, siteFile+"-"+rand.Text())
	name := fmt.Sprintf("%s-%s\n", host, strings.ToLower(rand.Text()[:8]))
	if err := durable.Replace(draft, []byte(name), 0o644); err != nil {
		return err
	}
	// A link fails if there is one by now, which a rename would not.
	if err = os.Link(draft, path); errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(draft), durable.SyncDir(dir))
}
