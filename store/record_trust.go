package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// JoinToken is the record of a token with which a machine may join once (SEC-2). Its key has the
// token's hash, never the token, and is on a lease.
type JoinToken struct {
	Schema   int       `json:"schema"`
	Instance string    `json:"instance"` // who may use it
	Issued   time.Time `json:"issued"`
}

// Joined records that the machine of an instance has exchanged a token for a certificate. All other
// tokens of the instance are void from then on. The same key may ask again with the same token,
// because the answer to its first call may have been lost.
type Joined struct {
	Schema   int       `json:"schema"`
	Instance string    `json:"instance"`
	Token    string    `json:"token"` // hash of the one that was used
	Key      string    `json:"key"`   // fingerprint of the machine's key
	From     string    `json:"from"`
	Replica  string    `json:"replica"`
	At       time.Time `json:"at"`
}

// HostToken is the record of a token with which a host may join a cluster of leasehold server once.
// Its key has the token's hash, never the token, and is on a lease. It says who has used it:
// the same key may ask again, because the answer to its first call may have been lost.
type HostToken struct {
	Schema int       `json:"schema"`
	By     string    `json:"by"`
	Issued time.Time `json:"issued"`
	Ends   time.Time `json:"ends"`
	Host   string    `json:"host,omitempty"` // the name under which it was used
	Key    string    `json:"key,omitempty"`  // fingerprint of that host's key
}

// NewToken makes a join token. It is given to one machine and never stored.
func NewToken() string { return rand.Text() + rand.Text() }

// CallOf names a call to a provider by the hash of the token that its machine received. It
// distinguishes the machines of several calls for one instance. The token cannot be derived from
// it.
func CallOf(hash string) string { return hash[:min(16, len(hash))] }

// IsTokenHash reports whether it is the form of a TokenHash.
func IsTokenHash(s string) bool {
	sum, err := hex.DecodeString(s)
	return err == nil && len(sum) == sha256.Size && s == hex.EncodeToString(sum)
}

// TokenHash returns the hash under which a token is stored.
func TokenHash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
