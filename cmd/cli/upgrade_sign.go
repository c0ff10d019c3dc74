package cli

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/agent/version"
	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/provider/durable"
)

// UpgradeKey is the command upgrade key.
type UpgradeKey struct {
	File string `arg:"" help:"File to create for the private key. The public key is printed, and written next to it as FILE.pub." type:"path"`
	Name string `help:"Name of the key: a part of each signature." default:"leasehold-release"`
}

// Run makes a key pair. It replaces none.
func (c *UpgradeKey) Run(inv *Invocation) error {
	private, public, err := release.NewKey(c.Name)
	if err != nil {
		return failure(Usage, "name the key without spaces and plus signs", "--name: %s: %s", c.Name, err)
	}
	if err := createKey(c.File, private, 0o600); err != nil {
		return err
	}
	if err := createKey(c.File+".pub", public, 0o644); err != nil {
		_ = os.Remove(c.File) // a private key without its public key is of no use, and was never shown
		return err
	}
	fmt.Fprintln(inv.env.Stdout, public)
	inv.note("keep %s off line: its holder can run programs on every machine. Give the "+
		"public key to agents with --release-key or LEASEHOLD_RELEASE_KEY", output.OneLine(c.File))
	return nil
}

// createKey writes a new file, and leaves nothing behind when it cannot.
func createKey(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return failure(Conflict, "name another file", "%s already exists, and was left unchanged", path)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, text)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			_ = os.Remove(path)
		}
	}
	if err != nil {
		return failure(Failed, "leasehold upgrade key FILE, in a directory that you may write to", "%s", err)
	}
	return nil
}

// UpgradeSign is the command upgrade sign.
type UpgradeSign struct {
	Programs       []string `arg:"" name:"agent" help:"Programs leasehold-agent-linux-ARCH." type:"existingfile"`
	ReleaseKey     string   `required:"" help:"File with the private key." type:"existingfile" placeholder:"FILE"`
	Version        string   `name:"release" required:"" help:"Version of the programs, as leasehold-agent --version prints it." placeholder:"VERSION"`
	AllowDowngrade bool     `help:"Let groups that ask for a downgrade install this version."`
}

// platforms are the platforms that have agents, by their ELF machines.
var platforms = map[elf.Machine]string{elf.EM_X86_64: "linux/amd64", elf.EM_AARCH64: "linux/arm64"}

// Run writes a signed statement beside each program. It needs no coordinator and no etcd.
func (c *UpgradeSign) Run(inv *Invocation) error {
	if _, ok := version.Parse(c.Version); !ok {
		return failure(Usage, "name a release, like v1.2.0", "--release: %s: it is not a release, so agents could not tell "+
			"whether it is later than theirs", output.OneLine(c.Version))
	}
	key, err := os.ReadFile(c.ReleaseKey)
	if err != nil {
		return failure(Failed, "give the file that leasehold upgrade key wrote", "%s", err)
	}
	for _, path := range c.Programs {
		st, err := c.statement(path)
		if err != nil {
			return failure(Failed, "give programs that make agents has built", "%s: %s", path, err)
		}
		signed, err := release.Sign(st, string(key))
		if err != nil {
			return failure(Failed, "give the file that leasehold upgrade key wrote", "--release-key: %s: %s", c.ReleaseKey, err)
		}
		if err := durable.Replace(path+".sig", []byte(signed), 0o644); err != nil {
			return failure(Failed, "copy the program to a directory in which you may write", "%s", err)
		}
		fmt.Fprintf(inv.env.Stdout, "%s.sig: %s, %s, sha256 %s\n", path, st.Version, st.Platform, st.SHA256)
	}
	return nil
}

// statement returns the statement to sign about a program.
func (c *UpgradeSign) statement(path string) (release.Statement, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return release.Statement{}, err
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return release.Statement{}, fmt.Errorf("this is not a program for Linux: %w", err)
	}
	platform := platforms[file.Machine]
	if platform == "" {
		return release.Statement{}, fmt.Errorf("it is for %s, for which there are no agents", file.Machine)
	}
	if !bytes.Contains(content, []byte(c.Version)) {
		return release.Statement{}, fmt.Errorf(
			"the program does not contain version %s: agents would report another one and the upgrade would never finish",
			c.Version)
	}
	sum := sha256.Sum256(content)
	return release.Statement{
		Version: c.Version, Platform: platform, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		Downgrade: c.AllowDowngrade,
	}, nil
}
