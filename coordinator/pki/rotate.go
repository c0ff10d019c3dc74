package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/provider/durable"
)

// Stage is the progress of a rotation, in which one agents' authority replaces another.
type Stage string

// The stages, in order. The first follows the last.
const (
	Settled    Stage = "settled"    // one authority issues and is trusted
	Introduced Stage = "introduced" // the next is trusted too
	Promoted   Stage = "promoted"   // the next issues; the old one is still trusted
)

// Stage returns the progress of a rotation.
func (f Files) Stage() Stage {
	switch {
	case f.Next != nil, f.Unfinished:
		return Introduced
	case len(f.Old) > 0:
		return Promoted
	default:
		return Settled
	}
}

// Introduce creates the next agents' authority: it is trusted, but does not issue yet.
func Introduce(dir string, lifetime time.Duration) error {
	files, err := Load(dir, Agents)
	if err != nil {
		return err
	}
	if stage := files.Stage(); stage != Settled {
		return fmt.Errorf("introduce certificate authority: the one before is %s, and not settled", stage)
	}
	next, err := newSigner(Agents, lifetime)
	if err != nil {
		return err
	}
	return next.write(filepath.Join(files.Dir, nextCert), filepath.Join(files.Dir, nextKey))
}

// Promote makes the introduced authority the issuer; the previous one is still trusted. After a
// crash between any two of its steps the files are valid, and Promote completes what was begun.
func Promote(dir string) error {
	files, err := Load(dir, Agents)
	if err != nil {
		return err
	}
	if files.Next == nil && !files.Unfinished {
		return errors.New("promote certificate authority: none was introduced")
	}
	if files.Next != nil {
		if files.Next.Key == nil {
			return problem(nil, "copy it from where the authority was made, and chmod 600 it", "%s is missing",
				filepath.Join(files.Dir, nextKey))
		}
		old := append(files.Old, files.Issuer.Certificate)
		if files.Unfinished {
			old = files.Old // it contains the issuer already
		}
		if err := durable.Replace(filepath.Join(files.Dir, oldCert), certificatePEM(old...), 0o644); err != nil {
			return err
		}
		if err := durable.Rename(filepath.Join(files.Dir, nextCert), filepath.Join(files.Dir, caCert)); err != nil {
			return fmt.Errorf("promote certificate authority: %w", err)
		}
	}
	if err := durable.Rename(filepath.Join(files.Dir, nextKey), filepath.Join(files.Dir, caKey)); err != nil {
		return fmt.Errorf("promote certificate authority: %w", err)
	}
	return nil
}

// Retire removes the old authority from those trusted.
func Retire(dir string) error {
	files, err := Load(dir, Agents)
	if err != nil {
		return err
	}
	if files.Unfinished {
		return errors.New("retire certificate authority: the next one does not issue yet")
	}
	if err := os.Remove(filepath.Join(files.Dir, oldCert)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("retire certificate authority: %w", err)
	}
	return durable.SyncDir(files.Dir)
}
