package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/coordinator/keyfile"
	"github.com/leasehold/leasehold/store"
)

// SecretNewKey is the command secret new-key.
type SecretNewKey struct {
	File string `arg:"" optional:"" help:"File to create (default: print the key)." type:"path"`
}

// Run makes a key.
func (c *SecretNewKey) Run(inv *Invocation) error {
	k := encryption.NewKey()
	if c.File == "" {
		_, err := fmt.Fprintln(inv.env.Stdout, k.Line())
		return err
	}
	err := keyfile.Create(c.File, encryption.Ring{}.With(k))
	if errors.Is(err, fs.ErrExist) {
		return failure(Conflict, "leasehold secret rotate --secrets-key "+c.File+" puts a new key into it",
			"%s already exists, and was left unchanged", c.File)
	}
	if err != nil {
		return failure(Failed, "leasehold secret new-key FILE, in a directory that you may write to", "%s", err)
	}
	fmt.Fprintf(inv.env.Stdout, "%s made with key %s\n", c.File, k.ID)
	inv.note("give the same file to every coordinator of the shard, with --secrets-key or LEASEHOLD_SECRETS_KEY_FILE, " +
		"and keep a copy: without it no secret can be read")
	return nil
}

// SecretRotate is the command secret rotate.
type SecretRotate struct {
	Prune bool `help:"Remove unused keys from the key file."`
	services.KeyFile
}

// rotateWait is how long replicas have to read a key file that they share with this machine.
const rotateWait = 5 * time.Second

// Run goes as far as it can. After an interruption, the same command continues: it adds a key only
// if all secrets have the first one already and no other is left over.
func (c *SecretRotate) Run(ctx context.Context, inv *Invocation) error {
	path, err := inv.keyPath(c.KeyFile)
	if err != nil {
		return err
	}
	if path == "" {
		return failure(Usage, "put the keys into a file, and give it with --secrets-key",
			"keys in LEASEHOLD_SECRETS_KEY cannot be changed by this command")
	}
	unlock, err := keyfile.Lock(path)
	if err != nil {
		return failure(Failed, "leasehold secret rotate, in a moment", "%s", err)
	}
	defer unlock()
	ring, err := inv.keyring(path)
	if err != nil {
		return err
	}
	of, err := inv.readSealing(ctx)
	if err != nil {
		return err
	}
	if c.Prune {
		return c.prune(inv, path, ring, of)
	}
	first, _ := ring.First() // keyring has checked that
	behind := of.behind(first)
	if len(ring.IDs()) > 1 && len(behind) == 0 {
		fmt.Fprintf(inv.env.Stdout, "all secrets have key %s\n", first.ID)
		inv.note("the rotation is done; finish it with leasehold secret rotate --prune. After that rotate starts another one")
		return nil
	}
	if len(ring.IDs()) == 1 && len(behind) == 0 {
		next := encryption.NewKey()
		if err := keyfile.Replace(path, ring, ring.With(next)); err != nil {
			return failure(Failed, "leasehold secret rotate", "%s", err)
		}
		first, ring = next, ring.With(next)
		behind = of.behind(first)
		fmt.Fprintf(inv.env.Stdout, "%s has the new key %s\n", path, first.ID)
	}
	if err := c.awaitReplicas(ctx, inv, first, path); err != nil {
		return err
	}
	return c.encryptAnew(ctx, inv, ring, first, of.shard, behind)
}

// behind returns the secrets that are encrypted with another key.
func (of sealing) behind(k encryption.Key) []store.Versioned[store.Secret] {
	var out []store.Versioned[store.Secret]
	for _, v := range of.secrets {
		if v.Record.Key != k.ID {
			out = append(out, v)
		}
	}
	return out
}

// awaitReplicas waits until every running replica has the key.
func (c *SecretRotate) awaitReplicas(ctx context.Context, inv *Invocation, k encryption.Key, path string) error {
	limit := rotateWait
	if inv.flags.Timeout > 0 {
		limit = inv.flags.Timeout
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for noted := false; ; noted = true {
		all, err := inv.replicas(ctx)
		if err != nil {
			return err
		}
		without := lacking(all, k)
		if len(without) == 0 {
			if len(all) == 0 {
				inv.warn("no coordinator is running: each must have key %s in its key file before it is started", k.ID)
			}
			return nil
		}
		if !noted {
			inv.note("waiting for %s to read key %s …", strings.Join(without, ", "), k.ID)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			inv.note("no secret was re-encrypted")
			return inv.lacks(without, k, path, "leasehold secret rotate, which continues from there")
		case <-tick.C:
		}
	}
}

// encryptAnew encrypts each secret with the first key, one by one, if it is still as it was read.
// Its value and its version do not change.
func (c *SecretRotate) encryptAnew(ctx context.Context, inv *Invocation, ring encryption.Ring, first encryption.Key,
	shard string, behind []store.Versioned[store.Secret],
) error {
	var unread []string
	for _, v := range behind {
		_, name, _ := inv.keys().Split(v.Key)
		rec := v.Record
		rec.Name = name
		value, err := ring.Open(shard, rec)
		if err != nil {
			unread = append(unread, name+" ("+err.Error()+")")
			continue
		}
		if rec, err = ring.Seal(shard, rec, value); err != nil {
			return err
		}
		_, err = inv.commit(ctx, "write secret", store.Txn{
			Conditions: []store.Condition{v.Unchanged()}, Writes: []store.Write{store.Put(v.Key, store.Encode(rec))},
		})
		if errors.Is(err, store.ErrConflict) {
			return changedSecret(name, "leasehold secret rotate, which continues from there")
		}
		if err != nil {
			return err
		}
	}
	done := len(behind) - len(unread)
	fmt.Fprintf(inv.env.Stdout, "%s re-encrypted with key %s\n", counted(done, "secret", "secrets"), first.ID)
	if len(unread) > 0 {
		return failure(Failed, "leasehold secret set NAME gives one a new value; or put its key back into the key file",
			"cannot be decrypted, and are left unchanged: %s", strings.Join(unread, ", "))
	}
	inv.note("once no snapshot with the old keys is needed, remove them from the key files: " +
		"leasehold secret rotate --prune")
	return nil
}

// prune removes from the file the keys that nothing needs.
func (c *SecretRotate) prune(inv *Invocation, path string, ring encryption.Ring, of sealing) error {
	first, _ := ring.First()
	used := map[string]bool{first.ID: true}
	for _, v := range of.secrets {
		used[v.Record.Key] = true
	}
	kept := ring.Only(func(k encryption.Key) bool { return used[k.ID] })
	var gone []string
	for _, id := range ring.IDs() {
		if !slices.Contains(kept.IDs(), id) {
			gone = append(gone, id)
		}
	}
	if behind := of.behind(first); len(behind) > 0 {
		inv.warn("%s still encrypted with an older key: leasehold secret rotate",
			counted(len(behind), "secret is", "secrets are"))
	}
	if len(gone) == 0 {
		fmt.Fprintf(inv.env.Stdout, "%s unchanged: every key in it is needed\n", path)
		return nil
	}
	if err := keyfile.Replace(path, ring, kept); err != nil {
		return failure(Failed, "leasehold secret rotate --prune", "%s", err)
	}
	fmt.Fprintf(inv.env.Stdout, "removed %s from %s\n", strings.Join(gone, ", "), path)
	inv.note("remove them from the other coordinators' key files too; secrets in older snapshots of " +
		"etcd cannot be read without them")
	return nil
}
