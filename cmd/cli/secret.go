package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/store"
)

// Secrets are the commands about secrets (SEC-6).
type Secrets struct {
	NewKey SecretNewKey `cmd:"" help:"Generate a key for secrets."`
	Set    SecretSet    `cmd:"" help:"Set the value of a secret, from standard input or a prompt."`
	List   SecretList   `cmd:"" help:"List the secrets and the groups that use them, without values."`
	Delete SecretDelete `cmd:"" help:"Delete a secret."`
	Rotate SecretRotate `cmd:"" help:"Encrypt all secrets with a new key."`
}

// keyPath returns the key file: the one that was named, the one beside the settings that select the
// etcd (leasehold dev keeps both in its data directory), or the default. It is "" if the keys are
// in the environment.
func (inv *Invocation) keyPath(named services.KeyFile) (string, error) {
	if named.SecretsKey != "" {
		return named.SecretsKey, nil
	}
	if inv.env.SecretsKey != "" {
		return "", nil
	}
	var places []string
	for _, v := range inv.settings {
		if file, ok := strings.CutPrefix(v.From, "file "); ok && v.Name == "endpoints" {
			places = append(places, services.DevKeyFile(filepath.Dir(file)))
		}
	}
	places = append(places, keyfile.Usual)
	for _, path := range places {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "",
		failure(Failed,
			"create one with leasehold secret new-key FILE, the same file for every coordinator; "+
				"then give it with --secrets-key or LEASEHOLD_SECRETS_KEY_FILE",
			"there is no key file: looked for %s", strings.Join(places, " and "))
}

// keyring reads the keys.
func (inv *Invocation) keyring(path string) (encryption.Ring, error) {
	if path == "" {
		ring, err := encryption.ParseRing(inv.env.SecretsKey)
		if err != nil {
			return ring, failure(Usage, "leasehold secret new-key", "LEASEHOLD_SECRETS_KEY: %s", err)
		}
		return ring, nil
	}
	ring, err := keyfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ring, failure(Failed, "leasehold secret new-key "+path, "%s", err)
	case errors.Is(err, keyfile.ErrOpen):
		return ring, failure(Failed, "chmod 600 "+path, "%s", err)
	case err != nil:
		return ring, failure(Failed, "leasehold secret new-key creates a valid one", "%s", err)
	case len(ring.IDs()) == 0:
		return ring, failure(Failed, "leasehold secret new-key >> "+path, "key file %s has no keys", path)
	}
	return ring, nil
}

// sealing is the encryption state of a shard.
type sealing struct {
	shard    string // the shard's random ID
	secrets  []store.Versioned[store.Secret]
	replicas []store.Versioned[store.Replica]
}

// readSealing reads it. A shard that was never served has no ID to bind secrets to.
func (inv *Invocation) readSealing(ctx context.Context) (sealing, error) {
	var of sealing
	shard, _, err := findRecord[store.Shard](ctx, inv, inv.keys().Shard())
	if err != nil {
		return of, err
	}
	if !shard.Present() {
		return of, failure(NotFound, "leasehold status --all-shards",
			"there is no shard %s: no coordinator has ever served it", inv.flags.Shard)
	}
	of.shard = shard.Record.ID
	secrets, err := inv.list(ctx, inv.keys().Of(store.KindSecrets), 0)
	if err != nil {
		return of, err
	}
	of.secrets, _ = decodeReadable[store.Secret](secrets) // an unreadable one can be given a new value
	of.replicas, err = inv.replicas(ctx)
	return of, err
}

func (inv *Invocation) replicas(ctx context.Context) ([]store.Versioned[store.Replica], error) {
	l, err := inv.list(ctx, inv.keys().Of(store.KindReplicas), 0)
	if err != nil {
		return nil, err
	}
	return decodeAll[store.Replica](l)
}

// lacking returns the replicas that do not have a key.
func lacking(replicas []store.Versioned[store.Replica], k encryption.Key) []string {
	var names []string
	for _, r := range replicas {
		if !slices.Contains(r.Record.SecretKeys, k.Fingerprint()) {
			names = append(names, r.Record.ID)
		}
	}
	return names
}

// lacks reports them, with the next step.
func (inv *Invocation) lacks(names []string, k encryption.Key, path, again string) error {
	source := "LEASEHOLD_SECRETS_KEY"
	if path != "" {
		source = path
	}
	return failure(Failed,
		"put the key into the --secrets-key file of each of them, which is reloaded within a second; then "+again,
		"%s %s not have key %s of %s, and could not read what is encrypted with it", strings.Join(names, ", "),
		verb(names, "does", "do"), k.ID, source)
}

func verb(names []string, one, several string) string {
	if len(names) == 1 {
		return one
	}
	return several
}

// users returns the groups that use each secret, by its name: those whose spec names it, and those
// whose accepted spec still does.
func users(all []group) map[string][]string {
	out := map[string][]string{}
	note := func(group string, secrets map[string]string) {
		for _, name := range secrets {
			if !slices.Contains(out[name], group) {
				out[name] = append(out[name], group)
			}
		}
	}
	for _, g := range all {
		note(g.Name, g.Spec.Secrets)
		st := &g.Status.Record
		if st.Accepted != nil {
			note(g.Name, st.Accepted.Secrets)
		}
		if st.LastGood != nil && st.Rollout != nil && st.Rollout.Fallback != "" {
			note(g.Name, st.LastGood.Spec.Secrets) // instances are made from it now (ROLL-9)
		}
	}
	return out
}

func badSecretName(name string) error {
	return failure(Usage, "leasehold secret list", "%q: the name of a secret must be %s", name, store.SecretNames)
}

func noSecret(name string) error {
	return failure(NotFound, "leasehold secret list", "no secret %q", name)
}

func changedSecret(name, again string) error {
	return failure(Conflict, again,
		"secret %s: it was changed in the meantime; that change stands, and nothing was written", name)
}

// groupsShown formats a list of groups for a table.
func groupsShown(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

// noteUsers says which groups use a secret, and when their workloads get the new value.
func (inv *Invocation) noteUsers(groups []string) {
	for _, g := range groups {
		inv.note("group %s uses it: its workloads get the value at their next start; all of them now, with: "+
			"leasehold group restart %s", g, g)
	}
}

// secretLine reports a written secret.
func (inv *Invocation) secretLine(name, what string, rev store.Revision) {
	fmt.Fprintf(inv.env.Stdout, "%s %s rev %d\n", name, what, rev)
}
