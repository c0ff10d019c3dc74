package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/identity"
	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/store"
)

// tokenTime is how long a host may use a token.
const tokenTime = time.Hour

// token is the secret with which a host joins, and the fingerprint of the authority. The host sends
// the secret only to a server that has a certificate of this authority.
type token struct{ secret, authority string }

func (t token) String() string { return t.secret + "." + t.authority }

// parseToken reads a token.
func parseToken(text string) (token, error) {
	secret, authority, ok := strings.Cut(strings.TrimSpace(text), ".")
	if !ok || len(secret) < 40 || len(secret) > 100 || len(authority) != 32 {
		return token{}, problem("leasehold server token, on a host of the cluster, makes one",
			"--token: it is not a token of leasehold server")
	}
	return token{secret, authority}, nil
}

// invite creates a token.
func (p Place) invite(ctx context.Context, st store.Store, shard, by string) (string, error) {
	agents, err := pki.Load(p.credentials().Dir, pki.Agents)
	if err != nil {
		return "", err
	}
	t := token{secret: store.NewToken(), authority: agents.Issuer.Fingerprint()}
	lease, err := st.Grant(ctx, tokenTime)
	if err != nil {
		return "", err
	}
	now := time.Now().UTC()
	record := store.HostToken{Schema: store.Schema, By: by, Issued: now, Ends: now.Add(tokenTime)}
	key := store.KeysOf(shard).Host(store.TokenHash(t.secret))
	_, err = st.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Absent(key)},
		Writes:     []store.Write{store.PutLeased(key, store.Encode(record), lease.ID)},
	})
	return t.String(), err
}

// errToken is the only answer to an unusable token. The log has the reason.
var errToken = errors.New("the token is unknown, used or older than an hour")

// redeem uses up a token for a host and its key. The same key may use the token again, because the
// answer to its first call may have been lost.
func redeem(ctx context.Context, st store.Store, shard, secret, host string, request []byte) error {
	public, err := identity.ReadRequest(request)
	if err != nil {
		return err
	}
	fingerprint, err := identity.KeyPrint(public)
	if err != nil {
		return err
	}
	kv, err := st.Get(ctx, store.KeysOf(shard).Host(store.TokenHash(secret)))
	if errors.Is(err, store.ErrNotFound) {
		return errToken
	}
	if err != nil {
		return err
	}
	known, err := store.Decode[store.HostToken](kv)
	if err != nil {
		return err
	}
	switch r := known.Record; {
	case r.Key == fingerprint && r.Host == host:
		return nil
	case r.Key != "" || !time.Now().Before(r.Ends.Add(time.Minute)): // the lease's end decides, not our clock
		return errToken
	}
	known.Record.Host, known.Record.Key = host, fingerprint
	_, err = st.Commit(ctx, store.Txn{
		Conditions: []store.Condition{store.Unchanged(kv)},
		Writes:     []store.Write{store.PutLeased(kv.Key, store.Encode(known.Record), kv.Lease)},
	})
	if errors.Is(err, store.ErrConflict) {
		return errToken
	}
	return err
}

// shared are the files below the data directory that all hosts of a cluster have: the authorities,
// so that any host can admit others and renew its own certificates, and the keys for secrets.
var shared = []string{
	"pki/agents/ca.crt", "pki/agents/ca.key", "pki/agents/next.crt", "pki/agents/next.key", "pki/agents/old.crt",
	"pki/operators/ca.crt", "pki/operators/ca.key", "secrets.key",
}

// readShared reads the shared files that exist. It reads twice, because files in the middle of an
// exchange do not match each other.
func (p Place) readShared() (map[string][]byte, error) {
	last, err := p.readSharedOnce()
	for range 10 {
		if err != nil {
			return nil, err
		}
		var again map[string][]byte
		if again, err = p.readSharedOnce(); err == nil && maps.EqualFunc(last, again, bytes.Equal) {
			return last, nil
		}
		last = again
	}
	return nil, errors.Join(err, errors.New("read what hosts share: the files change all the time"))
}

func (p Place) readSharedOnce() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, name := range shared {
		text, err := os.ReadFile(p.file(name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what hosts share: %w", err)
		}
		out[name] = text
	}
	return out, nil
}
