package services

import (
	"os"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/leasehold/leasehold/coordinator/backup"
	"github.com/leasehold/leasehold/provider/program"
)

// Backups are the flags for a replica's scheduled backups (DAY-2).
type Backups struct {
	Dir        string        `help:"Directory for this replica's backups of the shard (default: none)." env:"LEASEHOLD_BACKUP_DIR" type:"path" placeholder:"DIR"`
	Command    string        `help:"Program, with arguments, that receives each backup on its standard input (default: none)." env:"LEASEHOLD_BACKUP_COMMAND" placeholder:"COMMAND"`
	User       string        `help:"User that --backup-command runs as; required if this program is root." env:"LEASEHOLD_BACKUP_USER" placeholder:"NAME"`
	Every      time.Duration `help:"How often the shard is backed up, 1m to 24h (default: ${default})." env:"LEASEHOLD_BACKUP_EVERY" default:"1h" placeholder:"DURATION"`
	Keep       int           `help:"How many backups stay in --backup-dir, 1 to 10000 (default: ${default})." env:"LEASEHOLD_BACKUP_KEEP" default:"48" placeholder:"N"`
	Recipients string        `help:"File with the age recipients that backups are encrypted to, one per line (default: not encrypted)." env:"LEASEHOLD_BACKUP_RECIPIENTS" type:"path" placeholder:"FILE"`
}

// config checks the flags; nil: this replica makes no backups.
func (b Backups) config() (*backup.Config, error) {
	if b.Dir == "" && b.Command == "" {
		return nil, nil
	}
	const help = "leasehold coordinator --help"
	switch {
	case b.Every < time.Minute || b.Every > 24*time.Hour:
		return nil, problem(help, "--backup-every: %s: must be 1m to 24h", b.Every)
	case b.Keep < 1 || b.Keep > 10000:
		return nil, problem(help, "--backup-keep: %d: must be 1 to 10000", b.Keep)
	case b.Command != "" && b.User == "" && os.Geteuid() == 0:
		return nil, problem("name the user that the command runs as (root too must be named)",
			"--backup-user: is missing: this program is root")
	}
	cfg := &backup.Config{Every: b.Every, Dir: b.Dir, Keep: b.Keep, Command: strings.Fields(b.Command)}
	if b.Command != "" && b.User != "" {
		as, err := program.Credential(b.User)
		if err != nil {
			return nil, problem(help, "--backup-user: %s", strings.TrimPrefix(err.Error(), "user: "))
		}
		cfg.As = as
	}
	if b.Recipients != "" {
		file, err := os.Open(b.Recipients)
		if err != nil {
			return nil, problem("name a file with a line age1… for each recipient; age-keygen makes a pair",
				"--backup-recipients: %s", err)
		}
		defer file.Close()
		if cfg.Recipients, err = age.ParseRecipients(file); err != nil {
			return nil, problem("name a file with a line age1… for each recipient; age-keygen makes a pair",
				"--backup-recipients: %s: %s", b.Recipients, err)
		}
	}
	return cfg, nil
}
