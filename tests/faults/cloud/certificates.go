package cloud

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/leaks"
)

// Pair is the names of the files of a certificate and of its key.
type Pair struct{ Certificate, Key string }

// sightings are what was seen of a machine's files, so that each state is recorded once.
type sightings struct {
	wrong       map[string]string // by file that was there: what was wrong with it; "" if nothing
	certificate string            // the serial number of the last one
	key         string
}

// lookAtCertificate records a certificate that was not there before, and notes its key, so that it
// can be looked for elsewhere.
func (c *Cloud) lookAtCertificate(m *machine, seen *sightings) {
	if c.cfg.Certificate == nil {
		return
	}
	if key, err := os.ReadFile(filepath.Join(m.dir, Managed, c.cfg.Certificate.Key)); err == nil &&
		string(key) != seen.key {
		if texts, err := leaks.OfKey(fmt.Sprintf("key %d", len(c.Keys(m.id))), key); err == nil {
			seen.key = string(key)
			c.noteKey(m.id, texts)
		} // otherwise the file is torn
	}
	text, err := os.ReadFile(filepath.Join(m.dir, Managed, c.cfg.Certificate.Certificate))
	if err != nil {
		return
	}
	leaf, err := Leaf(string(text))
	if err != nil || leaf.SerialNumber.String() == seen.certificate {
		return
	}
	seen.certificate = leaf.SerialNumber.String()
	c.cfg.Log.Add(history.Event{Certificate: &history.Certificate{
		Instance: m.id, Path: c.cfg.Certificate.Certificate, Serial: seen.certificate, Left: time.Until(leaf.NotAfter),
	}})
}

// Leaf returns the first certificate of a text.
func Leaf(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, fmt.Errorf("there is no certificate in %d bytes", len(text))
	}
	return x509.ParseCertificate(block.Bytes)
}

func (c *Cloud) noteKey(instance string, texts map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keys[instance] == nil {
		c.keys[instance] = map[string]string{}
	}
	maps.Copy(c.keys[instance], texts)
}

// Keys returns what reveals the private keys that a machine has, or had.
func (c *Cloud) Keys(instance string) map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.keys[instance])
}

// Ever returns all machines that ever existed.
func (c *Cloud) Ever() []string { return c.those(func(*machine) bool { return true }) }
