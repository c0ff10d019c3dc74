package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/encryption"
	"github.com/leasehold/leasehold/store"
)

// SecretSet is the command secret set. The value is never an argument: arguments are visible to
// every user of the machine.
type SecretSet struct {
	Name     string `arg:"" help:"Name of the secret."`
	FromFile string `help:"Read the value from this file instead of standard input." type:"existingfile" placeholder:"FILE"`
	services.KeyFile
}

// Run sets the value.
func (c *SecretSet) Run(ctx context.Context, inv *Invocation) error {
	if !store.IsSecretName(c.Name) {
		return badSecretName(c.Name)
	}
	path, err := inv.keyPath(c.KeyFile)
	if err != nil {
		return err
	}
	if _, _, err := c.sealing(ctx, inv, path); err != nil { // before an operator types a value
		return err
	}
	value, err := c.value(ctx, inv)
	if err != nil {
		return err
	}
	ring, of, err := c.sealing(ctx, inv, path) // that took its time: the keys may have been rotated
	if err != nil {
		return err
	}
	first, err := ring.First()
	if err != nil {
		return err
	}
	next := store.Secret{Name: c.Name, Version: 1, By: inv.who(), At: inv.env.Now().UTC()}
	was := store.Versioned[store.Secret]{Key: inv.keys().Secret(c.Name)}
	for _, known := range of.secrets {
		if known.Key != was.Key {
			continue
		}
		was, next.Version = known, known.Record.Version+1
		if old, err := ring.Open(of.shard, known.Record); err == nil && bytes.Equal(old, value) &&
			known.Record.Key == first.ID {
			inv.secretLine(c.Name, "unchanged", known.Modified)
			return nil
		}
	}
	if next, err = ring.Seal(of.shard, next, value); err != nil {
		return err
	}
	rev, err := inv.commit(ctx, "write secret", store.Txn{
		Conditions: []store.Condition{was.Unchanged()}, Writes: []store.Write{store.Put(was.Key, store.Encode(next))},
	})
	if errors.Is(err, store.ErrConflict) {
		return changedSecret(c.Name, c.again())
	}
	if err != nil {
		return err
	}
	inv.secretLine(c.Name, fmt.Sprintf("set version %d", next.Version), rev)
	all, _, err := inv.groups(ctx, inv.keys(), 0)
	if err != nil {
		return err
	}
	if next.Version > 1 {
		inv.noteUsers(users(all)[c.Name])
	}
	return nil
}

func (c *SecretSet) again() string { return "leasehold secret set " + c.Name }

// sealing returns the keys, and what is encrypted with them now. All coordinators have the first
// key.
func (c *SecretSet) sealing(ctx context.Context, inv *Invocation, path string) (
	ring encryption.Ring, of sealing, err error,
) {
	if ring, err = inv.keyring(path); err != nil {
		return ring, of, err
	}
	first, err := ring.First()
	if err != nil {
		return ring, of, failure(Failed, "leasehold secret new-key", "%s", err)
	}
	if of, err = inv.readSealing(ctx); err != nil {
		return ring, of, err
	}
	if without := lacking(of.replicas, first); len(without) > 0 {
		return ring, of, inv.lacks(without, first, path, c.again())
	}
	return ring, of, nil
}

// value returns what to store. One newline at its end is removed: editors and echo add it, and no
// password has one.
func (c *SecretSet) value(ctx context.Context, inv *Invocation) ([]byte, error) {
	var value []byte
	var err error
	switch {
	case c.FromFile != "":
		value, err = readBounded(c.FromFile)
	case inv.env.StdinTerminal:
		value, err = c.ask(ctx, inv)
	default:
		value, err = io.ReadAll(io.LimitReader(inv.env.Stdin, store.MaxSecret+3))
	}
	if err != nil {
		return nil, err
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	next := "leasehold secret set " + c.Name + ", with the value on standard input or --from-file FILE"
	switch {
	case len(value) == 0:
		return nil, failure(Usage, next, "secret %s: the value is empty", c.Name)
	case len(value) > store.MaxSecret:
		return nil, failure(Usage, next, "secret %s: the value is longer than %d bytes", c.Name, store.MaxSecret)
	case bytes.IndexByte(value, 0) >= 0:
		return nil, failure(Usage, next,
			"secret %s: the value has a zero byte, which no environment variable can hold: encode it, for example in base64",
			c.Name)
	}
	if len(value) < shortSecret {
		inv.warn("the value has fewer than %d bytes: it is too short to be redacted from workload output", shortSecret)
	}
	return value, nil
}

// ask prompts twice, because the input is not echoed.
func (c *SecretSet) ask(ctx context.Context, inv *Invocation) ([]byte, error) {
	value, err := inv.env.Ask(ctx, "value of "+c.Name+": ")
	if err != nil {
		return nil, err
	}
	again, err := inv.env.Ask(ctx, "once more: ")
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(value, again) {
		return nil, failure(Failed, "leasehold secret set "+c.Name,
			"secret %s: the two values differ; nothing was changed", c.Name)
	}
	return value, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failure(Failed, "leasehold secret set --help", "read the value: %s", err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, store.MaxSecret+3))
}
