package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/provider/clip"
	"github.com/leasehold/leasehold/store"
)

// Why a secret cannot be read.
var (
	// ErrKeyMissing: the key that it is encrypted with is not in the ring.
	ErrKeyMissing = errors.New("the key is missing")
	// ErrUnfit: it was changed, or belongs to another shard, name or version, or was encrypted with
	// another key of that ID.
	ErrUnfit = errors.New("it does not fit its key, shard, name and version: it was changed, or put in another's place")
)

// Seal encrypts a value, with the first key, as the secret whose name and version the record has.
// The record comes back complete; By and At are left alone.
func (r Ring) Seal(shard string, s store.Secret, value []byte) (store.Secret, error) {
	k, err := r.First()
	if err != nil {
		return store.Secret{}, err
	}
	s.Schema, s.Key = store.Schema, k.ID
	box, err := k.box()
	if err != nil {
		return store.Secret{}, fmt.Errorf("encrypt secret %s: %w", s.Name, err)
	}
	s.Nonce = make([]byte, box.NonceSize())
	_, _ = rand.Read(s.Nonce) // never fails
	s.Ciphertext = box.Seal(nil, s.Nonce, value, place(shard, s))
	return s, nil
}

// Open is the value of a secret.
func (r Ring) Open(shard string, s store.Secret) ([]byte, error) {
	k, ok := r.find(s.Key)
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrKeyMissing, clip.Marked(s.Key, 40))
	}
	box, err := k.box()
	if err != nil {
		return nil, err
	}
	if len(s.Nonce) != box.NonceSize() {
		return nil, ErrUnfit
	}
	value, err := box.Open(nil, s.Nonce, s.Ciphertext, place(shard, s))
	if err != nil {
		return nil, ErrUnfit
	}
	return value, nil
}

func (k Key) box() (cipher.AEAD, error) {
	block, err := aes.NewCipher(k.key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// place is what a ciphertext is bound to. Each part has its length before it, so that no two places
// read the same.
func place(shard string, s store.Secret) []byte {
	out := []byte("leasehold secret 1\x00")
	for _, part := range []string{shard, s.Name, s.Key} {
		out = binary.BigEndian.AppendUint64(out, uint64(len(part)))
		out = append(out, part...)
	}
	return binary.BigEndian.AppendUint64(out, uint64(s.Version))
}
