package download

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/store"
)

// largest bounds the size of an agent program.
const largest = 256 << 20

// machines are the ELF machines by architecture, as Go names it.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Agents are agent programs by architecture.
type Agents map[string]Program

// Program is an agent program.
type Program struct {
	Content []byte
	SHA256  string
	// Statement is what the release's key has signed of it; "": nothing. Agents verify it, and
	// coordinators have no part in that.
	Statement string
	Version   string // as the statement says
}

// Read reads the programs leasehold-agent-linux-ARCH of a directory. There must be at least one,
// and each must be for its architecture. Statements beside them that are of no use are warned of:
// new machines need the programs alone.
func Read(dir string, log *slog.Logger) (Agents, error) {
	found := Agents{}
	for arch, machine := range machines {
		path := filepath.Join(dir, "leasehold-agent-linux-"+arch)
		program, err := read(path, machine)
		if err == nil {
			if err := program.readStatement(path+".sig", "linux/"+arch); err != nil {
				log.Warn("agents are not offered this program", "why", err)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[arch] = program
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has neither leasehold-agent-linux-amd64 nor leasehold-agent-linux-arm64", dir)
	}
	return found, nil
}

func read(path string, machine elf.Machine) (Program, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Program{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > largest {
		return Program{}, fmt.Errorf("%s: not a file of at most %d MiB", path, largest>>20)
	}
	file, err := elf.Open(path)
	if err != nil {
		return Program{}, fmt.Errorf("%s: not a program for Linux: %w", path, err)
	}
	err = file.Close()
	if file.Machine != machine {
		return Program{}, fmt.Errorf("%s is for %s, not for %s", path, file.Machine, machine)
	}
	if err != nil {
		return Program{}, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Program{}, err
	}
	sum := sha256.Sum256(content)
	return Program{Content: content, SHA256: hex.EncodeToString(sum[:])}, nil
}

// readStatement reads the signed statement beside a program, if there is one. One that is not of
// the program is an error: no agent would install it.
func (p *Program) readStatement(path, platform string) error {
	signed, err := readBounded(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := release.Peek(string(signed))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case st.SHA256 != p.SHA256 || st.Size != int64(len(p.Content)) || st.Platform != platform:
		return fmt.Errorf("%s is of another program than the one beside it: sign this one", path)
	}
	p.Statement, p.Version = string(signed), st.Version
	return nil
}

// readBounded reads no more than a statement may have.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, release.MaxSigned+1))
	if err == nil && len(data) > release.MaxSigned {
		err = fmt.Errorf("%s: more than %d bytes", path, release.MaxSigned)
	}
	return data, err
}

// Releases are the signed programs, as agents are offered them.
func (a Agents) Releases() []store.AgentRelease {
	var all []store.AgentRelease
	for _, arch := range slices.Sorted(maps.Keys(a)) {
		if p := a[arch]; p.Statement != "" {
			all = append(all, store.AgentRelease{
				Version: p.Version, Platform: "linux/" + arch, Statement: p.Statement, Path: Path(arch),
			})
		}
	}
	return all
}

// Sums are the hashes by architecture.
func (a Agents) Sums() map[string]string {
	sums := map[string]string{}
	for arch, p := range a {
		sums[arch] = p.SHA256
	}
	return sums
}
