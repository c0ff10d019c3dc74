package cloud

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/tests/faults/history"
)

// Managed is the directory below a machine's own in which its agent may keep files.
const Managed = "files"

// File returns a file that an agent keeps on a machine; false if there is none.
func (c *Cloud) File(instance, name string) (content string, there bool) {
	m := c.machine(instance)
	if m == nil {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(m.dir, Managed, name))
	return string(data), err == nil
}

// lookAtFiles records each file of a machine that is not whole, or not there any more, once for
// each state.
func (c *Cloud) lookAtFiles(m *machine, seen *sightings) {
	c.lookAtCertificate(m, seen)
	for name, whole := range c.cfg.Whole {
		data, err := os.ReadFile(filepath.Join(m.dir, Managed, name))
		_, was := seen.wrong[name]
		var wrong string
		switch {
		case errors.Is(err, fs.ErrNotExist) && !was:
			continue
		case err != nil:
			wrong = err.Error()
		default:
			wrong = whole(string(data))
		}
		if wrong != "" && seen.wrong[name] != wrong {
			c.cfg.Log.Add(history.Event{Torn: &history.Torn{Instance: m.id, Path: name, What: wrong}})
		}
		seen.wrong[name] = wrong
	}
}
