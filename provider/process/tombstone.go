package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/provider/durable"
)

// tombstoneLife is far longer than any call that began before the Delete can take.
const (
	tombstoneLife = 24 * time.Hour
	pruneEvery    = time.Hour
)

func (p *Provider) tombstone(shard, instance string) string {
	return filepath.Join(p.dir, deletedDir, instance+"@"+shard)
}

func (p *Provider) wasDeleted(shard, instance string) (bool, error) {
	_, err := os.Stat(p.tombstone(shard, instance))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// bury remembers that the ID is used up. Burying again restarts the day.
func (p *Provider) bury(shard, instance string) error {
	return durable.Replace(p.tombstone(shard, instance), nil, 0o600)
}

// discard makes a machine's directory vanish whole, and then removes it.
func (p *Provider) discard(instance string) error {
	trash, err := os.MkdirTemp(filepath.Join(p.dir, trashDir), instance+"-*")
	if err != nil {
		return err
	}
	if err := os.Rename(p.machineDir(instance), filepath.Join(trash, instance)); err != nil {
		return err
	}
	if err := durable.SyncDir(p.dir); err != nil {
		return err
	}
	return os.RemoveAll(trash)
}

// prune clears away old tombstones and what interrupted calls left behind. What cannot be removed
// now is tried again in an hour: it does no harm.
func (p *Provider) prune() {
	p.mu.Lock()
	due := time.Since(p.pruned) >= pruneEvery
	if due {
		p.pruned = time.Now()
	}
	p.mu.Unlock()
	if !due {
		return
	}
	for _, dir := range []string{deletedDir, trashDir, newDir} {
		entries, err := os.ReadDir(filepath.Join(p.dir, dir))
		if err != nil {
			p.log.Warn("clear away old machines", "error", err)
			continue
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || time.Since(info.ModTime()) < tombstoneLife {
				continue
			}
			if err := os.RemoveAll(filepath.Join(p.dir, dir, e.Name())); err != nil {
				p.log.Warn("clear away old machines", "error", err)
			}
		}
	}
}
