package store

import (
	"regexp"
	"time"
)

// Secret is a value for workloads alone, encrypted (SEC-6). A reader of etcd learns its name,
// when it was set, and how long it is.
type Secret struct {
	Schema  int    `json:"schema"`
	Name    string `json:"name"`
	Version int    `json:"version"` // grows with each new value
	// Key is the ID of the key that it is encrypted with. The ciphertext fits this shard, name,
	// version and key alone.
	Key        string    `json:"key"`
	Nonce      []byte    `json:"nonce"`
	Ciphertext []byte    `json:"ciphertext"`
	By         string    `json:"by"` // who set the value
	At         time.Time `json:"at"`
}

// MaxSecret is how long the value of a secret may be, in bytes: an environment variable must hold
// it.
const MaxSecret = 16 << 10

var secretForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// SecretNames describes valid names of secrets, for error messages.
const SecretNames = "1 to 63 of a-z, 0-9, dot, dash and underscore, beginning and ending with a letter or digit"

// IsSecretName reports whether a secret may be called so.
func IsSecretName(name string) bool { return secretForm.MatchString(name) }
