package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
)

// maxRequest bounds a request for a certificate; one for P-256 has about 300 bytes.
const maxRequest = 4 << 10

// NewKey makes a key. It never leaves the machine on which it is made.
func NewKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

// NewRequest returns a request for a certificate over the key. It carries no name: the token or the
// stream identifies the requester.
func NewRequest(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, fmt.Errorf("make certificate request: %w", err)
	}
	return der, nil
}

// ReadRequest returns the key that a certificate request is for. The request is signed with it,
// which proves that the requester has it.
func ReadRequest(der []byte) (*ecdsa.PublicKey, error) {
	if len(der) > maxRequest {
		return nil, fmt.Errorf("certificate request has %d bytes: at most %d are allowed", len(der), maxRequest)
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("read certificate request: %w", err)
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("read certificate request: its key is not ECDSA P-256")
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("read certificate request: not signed by its key: %w", err)
	}
	return key, nil
}

// KeyPrint returns the fingerprint of a key.
func KeyPrint(key *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("fingerprint of key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:16]), nil
}
