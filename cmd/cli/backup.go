package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/provider/durable"
	"github.com/leasehold/leasehold/store"
)

// Backup is the command backup (DAY-2).
type Backup struct {
	File           string   `arg:"" help:"File to write, or - for standard output; an existing file is replaced."`
	Recipient      []string `short:"r" help:"Encrypt to this age recipient (age1…); may be given several times." placeholder:"RECIPIENT"`
	RecipientsFile string   `short:"R" help:"Encrypt to the age recipients in this file, one per line." type:"path" placeholder:"FILE"`
}

// Help describes the content of a backup.
func (*Backup) Help() string {
	return `A backup is one shard at one revision: its settings, groups, instances and secrets, which stay encrypted as they are in etcd. The role viewer is enough. Journal, reports, orders and join tokens are not in it.

Key files and certificate authorities are not in it either: keep copies of --pki and --secrets-key elsewhere, encrypted.
leasehold coordinator --backup-dir DIR makes backups by itself. docs/backup.md has the whole story.`
}

// backupDone describes a backup in JSON.
type backupDone struct {
	File     string         `json:"file"`
	Shard    string         `json:"shard"`
	ShardID  string         `json:"shard_id"`
	At       time.Time      `json:"at"`
	Revision store.Revision `json:"revision"`
	Program  string         `json:"program"`
	Keys     int            `json:"keys"`
	Groups   int            `json:"groups"`
	Machines int            `json:"instances"`
	Secrets  int            `json:"secrets"`
}

func backupOf(file string, c backup.Content) backupDone {
	return backupDone{
		File: file, Shard: c.Shard, ShardID: c.ShardID, At: c.At, Revision: c.Revision, Program: c.Program,
		Keys: len(c.Entries), Groups: c.Count(store.KindGroups), Machines: c.Count(store.KindInstances),
		Secrets: c.Count(store.KindSecrets),
	}
}

func (b backupDone) String() string {
	return fmt.Sprintf("shard %s (ID %s) at rev %d: %s, %s, %s", b.Shard, b.ShardID, b.Revision,
		counted(b.Groups, "group", "groups"), counted(b.Machines, "instance", "instances"),
		counted(b.Secrets, "secret", "secrets"))
}

// Run writes the backup.
func (c *Backup) Run(ctx context.Context, inv *Invocation) error {
	recipients, err := c.recipients()
	if err != nil {
		return err
	}
	content, err := backup.Take(ctx, inv.list, inv.flags.Shard, inv.env.Version, inv.env.Now())
	if errors.Is(err, backup.ErrNoShard) {
		return failure(NotFound, "leasehold status", "%s", err)
	}
	if err != nil {
		return err
	}
	var file bytes.Buffer
	if err := content.Write(&file, recipients...); err != nil {
		return err
	}
	if c.File == "-" {
		if inv.env.StdoutTerminal {
			return failure(Usage, "leasehold backup FILE", "a backup is not written to a terminal")
		}
		if _, err := inv.env.Stdout.Write(file.Bytes()); err != nil {
			return err
		}
		inv.noteBackup(ctx, content, "standard output")
		return nil
	}
	err = durable.RemoveUnfinished(filepath.Dir(c.File), inv.env.Now())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		inv.note("what backups that were killed left behind could not be removed: %s", err)
	}
	if err := durable.Replace(c.File, file.Bytes(), 0o600); err != nil {
		err = durable.Cause(err)
		next := "name a file in a directory that you may write to"
		if durable.Full(err) {
			next = "free space on that disk, or name a file on another"
		}
		return failure(Failed, next, "%s: %s", c.File, err)
	}
	inv.noteBackup(ctx, content, c.File)
	done := backupOf(c.File, content)
	if ok, err := inv.records(done); ok || err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s: %s\n", c.File, done)
	if len(recipients) == 0 && done.Secrets > 0 {
		inv.note("secrets in it are encrypted with the key of --secrets-key alone; --recipient encrypts the whole file")
	}
	return nil
}

// noteBackup records the backup for status, unless the user is a viewer, who may not.
func (inv *Invocation) noteBackup(ctx context.Context, c backup.Content, to string) {
	err := inv.ask(ctx, "record the backup", "record a backup", func(ctx context.Context, st store.Store) error {
		return store.NoteBackup(ctx, st, inv.keys(),
			store.Backup{At: c.At, Revision: c.Revision, By: inv.who(), To: to})
	})
	if err != nil {
		inv.note("the backup is whole, but not recorded in etcd, so status does not count it: " +
			"the role operator is needed for that")
	}
}

func (c *Backup) recipients() ([]age.Recipient, error) {
	const makesPair = "give a line that age-keygen prints as public key"
	var all []age.Recipient
	for _, text := range c.Recipient {
		one, err := age.ParseRecipients(bytes.NewReader([]byte(text)))
		if err != nil {
			return nil, failure(Usage, makesPair, "--recipient: %s: must be an age recipient, age1…", text)
		}
		all = append(all, one...)
	}
	if c.RecipientsFile == "" {
		return all, nil
	}
	file, err := os.Open(c.RecipientsFile)
	if err != nil {
		return nil, failure(Usage, makesPair, "--recipients-file: %s", err)
	}
	defer file.Close()
	more, err := age.ParseRecipients(file)
	if err != nil {
		return nil, failure(Usage, makesPair, "--recipients-file: %s: %s", c.RecipientsFile, err)
	}
	return append(all, more...), nil
}

// Restore is the command restore (DAY-2).
type Restore struct {
	File     string   `arg:"" help:"File that leasehold backup has written."`
	Identity string   `short:"i" help:"File with the age identity that opens an encrypted backup." type:"path" placeholder:"FILE"`
	DryRun   bool     `help:"Check the file and show what is in it. Changes nothing."`
	Confirm  []string `help:"Confirm the restore by naming the shard." placeholder:"SHARD"`
}

// Help explains the steps.
func (*Restore) Help() string {
	return `Puts a shard into an etcd that does not hold it, or in the place of an empty one. Other shards there are not touched. The shard is on hold, so nothing is created or deleted.

1. leasehold restore FILE
2. leasehold group apply -f FILE           for each group that has changed since the backup
3. leasehold recover                       puts machines that are younger than the backup into their slots
4. leasehold release --dry-run             shows what would follow; then leasehold release

Where etcd had users and roles, leasehold auth init comes first. docs/backup.md has the whole story.`
}

// Run restores the shard.
func (c *Restore) Run(ctx context.Context, inv *Invocation) error {
	content, err := c.read()
	if err != nil {
		return err
	}
	is := backupOf(c.File, content)
	if content.Shard != inv.flags.Shard {
		return failure(Usage, "run the same command with --shard "+content.Shard, "%s is a backup of shard %s, not %s",
			c.File, content.Shard, inv.flags.Shard)
	}
	if c.DryRun {
		if ok, err := inv.records(is); ok || err != nil {
			return err
		}
		fmt.Fprintf(inv.env.Stdout, "%s: %s\nmade %s ago by %s; nothing changed\n", c.File, is,
			output.Age(inv.env.Now(), is.At), is.Program)
		return nil
	}
	replaces, err := c.replaces(ctx, inv, content)
	if err != nil {
		return err
	}
	waits, err := inv.waits(ctx)
	if err != nil {
		return err
	}
	if waits != nil && waits.ShardID != content.ShardID && waits.ShardID != replaces {
		return failure(Conflict, "leasehold status", "the coordinators wait for the shard with ID %s, and %s has ID %s",
			waits.ShardID, c.File, content.ShardID)
	}
	act := fmt.Sprintf("restore %s, as it was %s ago, on hold", is, output.Age(inv.env.Now(), is.At))
	if replaces != "" {
		act += fmt.Sprintf("; it replaces the empty shard with ID %s", replaces)
	}
	if err := inv.confirm(ctx, c.Confirm, inv.flags.Shard, act); err != nil {
		return err
	}
	if err := c.restore(ctx, inv, content); err != nil {
		return err
	}
	fmt.Fprintf(inv.env.Stdout, "%s restored on hold id %s\n", inv.flags.Shard, content.ShardID)
	inv.note("next: leasehold group apply -f FILE for each group that has changed since; " +
		"wait until leasehold recover shows no machine that is left; then leasehold release --dry-run")
	return nil
}

// replaces returns the ID of the empty shard that is replaced, and refuses if there is one with
// anything in it.
func (c *Restore) replaces(ctx context.Context, inv *Invocation, content backup.Content) (id string, err error) {
	var inTheWay *backup.InTheWayError
	err = inv.ask(ctx, "read the shard", inv.reading(inv.keys().Prefix()),
		func(ctx context.Context, st store.Store) (err error) {
			if id, err = content.Replaces(ctx, st); errors.As(err, &inTheWay) {
				return nil
			}
			return err
		})
	if inTheWay != nil {
		return "", inv.inTheWay(inTheWay)
	}
	return id, err
}

func (inv *Invocation) inTheWay(err *backup.InTheWayError) error {
	return failure(Conflict, "leasehold status shows the shard that is there; docs/backup.md#a-shard-is-in-the-way",
		"%s", err)
}

func (c *Restore) restore(ctx context.Context, inv *Invocation, content backup.Content) error {
	line := progressLine{to: inv.aside(), rewrite: inv.env.StderrTerminal}
	defer line.clear()
	hold := store.Hold{
		By: inv.who(), At: inv.env.Now().UTC(),
		Why: "it was restored from a backup of " + content.At.Format(time.RFC3339),
	}
	st, err := inv.open(ctx)
	if err != nil {
		return err
	}
	limited := eachLimited{Store: st, limit: inv.requestLimit()}
	err = content.Restore(ctx, limited, hold, func(done, all int) {
		line.show(fmt.Sprintf("[%d of %d keys restored]", done, all))
	})
	var inTheWay *backup.InTheWayError
	switch {
	case errors.As(err, &inTheWay):
		return inv.inTheWay(inTheWay)
	case err != nil:
		failed := inv.ask(ctx, "restore the shard", "restore shard "+inv.flags.Shard,
			func(context.Context, store.Store) error { return err })
		inv.note("the shard is not there before all of it is: run the same command again")
		return failed
	}
	return nil
}

// eachLimited is a store whose every request has a time limit.
type eachLimited struct {
	store.Store
	limit time.Duration
}

func (e eachLimited) Commit(ctx context.Context, txn store.Txn) (store.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	return e.Store.Commit(ctx, txn)
}

func (e eachLimited) Get(ctx context.Context, key string) (store.KV, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	return e.Store.Get(ctx, key)
}

func (e eachLimited) List(ctx context.Context, prefix string, at store.Revision) (store.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	return e.Store.List(ctx, prefix, at)
}

// read reads the file.
func (c *Restore) read() (backup.Content, error) {
	var identities []age.Identity
	if c.Identity != "" {
		file, err := os.Open(c.Identity)
		if err == nil {
			defer file.Close()
			identities, err = age.ParseIdentities(file)
		}
		if err != nil {
			return backup.Content{}, failure(Usage, "name the file that age-keygen has written", "--identity: %s: %s",
				c.Identity, err)
		}
	}
	file, err := os.Open(c.File)
	if err != nil {
		return backup.Content{}, failure(Usage, "leasehold restore --help", "%s", err)
	}
	defer file.Close()
	content, err := backup.Read(file, identities...)
	switch {
	case errors.Is(err, backup.ErrEncrypted):
		return content, failure(Usage, "leasehold restore FILE --identity KEYFILE", "%s: %s", c.File, err)
	case errors.Is(err, backup.ErrFormat):
		return content, failure(Failed, "leasehold version, and install the version that wrote it", "%s: %s", c.File, err)
	case err != nil:
		return content, failure(Failed, "leasehold restore with another backup", "%s: %s", c.File, err)
	}
	return content, nil
}
