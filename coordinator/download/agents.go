package download

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
}

// Read reads the programs leasehold-agent-linux-ARCH of a directory. There must be at least one,
// and each must be for its architecture.
func Read(dir string) (Agents, error) {
	found := Agents{}
	for arch, machine := range machines {
		path := filepath.Join(dir, "leasehold-agent-linux-"+arch)
		program, err := read(path, machine)
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

// Sums are the hashes by architecture.
func (a Agents) Sums() map[string]string {
	sums := map[string]string{}
	for arch, p := range a {
		sums[arch] = p.SHA256
	}
	return sums
}
