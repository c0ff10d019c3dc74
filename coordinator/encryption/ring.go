package encryption

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// keySize is the key size of AES-256.
const keySize = 32

// Key is one key, with a name that is not secret.
type Key struct {
	ID  string
	key [keySize]byte
}

// NewKey makes a key. Its ID is made up.
func NewKey() Key {
	var k Key
	_, _ = rand.Read(k.key[:]) // never fails
	k.ID = "k" + strings.ToLower(rand.Text()[:8])
	return k
}

// Line is the key as it stands in a key file. It is the one way in which a key shows.
func (k Key) Line() string { return k.ID + ":" + base64.StdEncoding.EncodeToString(k.key[:]) }

// Fingerprint tells the key from others, also from one of the same ID. It gives nothing of the key
// away.
func (k Key) Fingerprint() string {
	sum := sha256.Sum256(append([]byte("leasehold secrets key\x00"), k.key[:]...))
	return k.ID + ":" + hex.EncodeToString(sum[:6])
}

// Format prints the ID, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "key "+k.ID) }

// Ring is the keys in their order.
type Ring struct{ keys []Key }

// maxKeys bounds a ring: more are a mistake.
const maxKeys = 100

var idForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,40}$`)

// ParseRing reads keys, one a line as ID:base64; what is empty or begins with # is left out. No
// error has anything of a key.
func ParseRing(text string) (Ring, error) {
	var r Ring
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		id, encoded, found := strings.Cut(line, ":")
		id, encoded = strings.TrimSpace(id), strings.TrimSpace(encoded)
		if !found || !idForm.MatchString(id) {
			return Ring{},
				fmt.Errorf("line %d: must be ID:BASE64, with an ID of at most 40 letters, digits, dots, dashes and underscores",
					i+1)
		}
		data, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(data) != keySize {
			return Ring{},
				fmt.Errorf("line %d: key %s: must be %d bytes in base64, as leasehold secret new-key makes them", i+1,
					id, keySize)
		}
		if r.Has(id) {
			return Ring{}, fmt.Errorf("line %d: key %s is here twice", i+1, id)
		}
		if len(r.keys) == maxKeys {
			return Ring{}, fmt.Errorf("line %d: more than %d keys", i+1, maxKeys)
		}
		k := Key{ID: id}
		copy(k.key[:], data)
		r.keys = append(r.keys, k)
	}
	return r, nil
}

// Text is the ring as ParseRing reads it.
func (r Ring) Text() string {
	var b strings.Builder
	for _, k := range r.keys {
		b.WriteString(k.Line() + "\n")
	}
	return b.String()
}

// ErrNoKeys: there is no key to encrypt with.
var ErrNoKeys = errors.New("there is no key for secrets")

// First is the key that encrypts.
func (r Ring) First() (Key, error) {
	if len(r.keys) == 0 {
		return Key{}, ErrNoKeys
	}
	return r.keys[0], nil
}

// IDs names the keys, in their order.
func (r Ring) IDs() []string {
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.ID
	}
	return ids
}

// Fingerprints returns the keys' fingerprints, in their order.
func (r Ring) Fingerprints() []string {
	out := make([]string, len(r.keys))
	for i, k := range r.keys {
		out[i] = k.Fingerprint()
	}
	return out
}

// Has reports whether a key with this ID is among them.
func (r Ring) Has(id string) bool { _, ok := r.find(id); return ok }

// Equal reports whether both have the same keys in the same order.
func (r Ring) Equal(other Ring) bool { return slices.Equal(r.keys, other.keys) }

// With is the ring with a key on top, which encrypts from then on.
func (r Ring) With(k Key) Ring { return Ring{keys: append([]Key{k}, r.keys...)} }

// Only is the ring with those keys alone that are to be kept.
func (r Ring) Only(keep func(Key) bool) Ring {
	var out Ring
	for _, k := range r.keys {
		if keep(k) {
			out.keys = append(out.keys, k)
		}
	}
	return out
}

// Format prints the IDs, whatever the verb.
func (r Ring) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "keys "+strings.Join(r.IDs(), ", "))
}

func (r Ring) find(id string) (Key, bool) {
	i := slices.IndexFunc(r.keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return r.keys[i], true
}
