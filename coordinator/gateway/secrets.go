package gateway

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/cache"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/store"
)

// SecretKeys are the keys with which secrets can be read. They may change at any time.
type SecretKeys interface {
	Ring() encryption.Ring
}

// Why an agent does not get the value of a secret.
const (
	secretMissing   = "there is no such secret: leasehold secret set"
	secretOpen      = "the stream to the agent is not secured, so no value is sent over it"
	secretUnknown   = "this coordinator has not read the secrets yet"
	secretNoKeys    = "this coordinator has no keys for secrets: --secrets-key"
	secretUnread    = "its record cannot be read"
	secretUnfitting = "it cannot be decrypted: "
)

// secretsWanted returns the secrets of a record, without values, in the order of their variables.
func secretsWanted(names map[string]string) []*protocol.Secret {
	var list []*protocol.Secret
	for _, variable := range slices.Sorted(maps.Keys(names)) {
		list = append(list, &protocol.Secret{Variable: variable, Name: names[variable]})
	}
	return list
}

// filled returns the message for an agent twice, with and without the values of its secrets: the
// former is sent and forgotten, the latter is kept.
func (s *session) filled(group string, w *protocol.Wanted) (full, bare *protocol.Wanted) {
	if len(w.GetSecrets()) == 0 {
		return w, w
	}
	full, bare = proto.CloneOf(w), proto.CloneOf(w)
	for i, secret := range full.GetSecrets() {
		secret.Value, secret.Revision, secret.Problem = s.value(secret.GetName())
		bare.Secrets[i].Revision, bare.Secrets[i].Problem = secret.Revision, secret.Problem
		if secret.Problem != "" {
			s.g.undelivered.add("secret", group, s.instance, secret.GetName(), secret.GetProblem())
		}
	}
	return full, bare
}

// value returns the value of a secret, or why there is none.
func (s *session) value(name string) (value []byte, revision uint64, problem string) {
	if s.g.deps.Authority == nil {
		return nil, 0, secretOpen
	}
	var (
		rec   store.Versioned[store.Secret]
		there bool
		bad   bool
	)
	if !s.g.deps.Cache.View(func(c *cache.Content) {
		rec, there = c.Secrets[name]
		bad = c.Unreadable[s.g.cfg.Keys.Secret(name)] != ""
	}) {
		return nil, 0, secretUnknown
	}
	switch {
	case bad:
		return nil, uint64(rec.Modified), secretUnread
	case !there:
		return nil, 0, secretMissing + " " + name
	case s.g.deps.Secrets == nil || len(s.g.deps.Secrets.Ring().IDs()) == 0:
		return nil, uint64(rec.Modified), secretNoKeys
	}
	value, err := s.g.deps.Secrets.Ring().Open(s.g.cfg.ShardID, rec.Record)
	if err != nil {
		return nil, uint64(rec.Modified), secretUnfitting + err.Error()
	}
	return value, uint64(rec.Modified), ""
}

// SecretsChanged notifies every agent that has secrets; only changes are sent.
func (g *Gateway) SecretsChanged() {
	for _, s := range g.all() {
		s.secretsChanged("")
	}
}

// secretsChanged notifies the agent if it has this secret; "": any.
func (s *session) secretsChanged(name string) {
	w := &s.wanted
	w.mu.Lock()
	has := slices.ContainsFunc(w.now.GetSecrets(),
		func(secret *protocol.Secret) bool { return name == "" || secret.GetName() == name })
	inFiles := w.files.record != nil && slices.ContainsFunc(w.files.record.Spec.Files,
		func(f store.File) bool { return f.Secret != "" && (name == "" || f.Secret == name) })
	w.mu.Unlock()
	if has {
		s.notify(topicWanted)
	}
	if inFiles {
		s.notify(topicFiles)
	}
}
