// Package smbios reads the bootstrap document that a hypervisor has put into its guest's SMBIOS
// tables: an OEM string (a structure of type 11) that begins with [provider.SMBIOSBootstrap], in
// base64.
//
// Only root can read the tables, which need no module, disk or network. The hypervisor's operator
// writes them and has full control of the guest anyway, so the checks detect damage, not attacks.
package smbios

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// Tables is the path of the tables.
const Tables = "/sys/firmware/dmi/tables/DMI"

// maxTables exceeds the tables of every hypervisor: SMBIOS 2 limits them to 64 KiB.
const maxTables = 4 << 20

// Document reads the bootstrap document from a file with tables.
func Document(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this machine shows no SMBIOS tables (%s): /sys is not mounted, or it has none", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read SMBIOS tables: %w", err)
	}
	defer file.Close()
	tables, err := io.ReadAll(io.LimitReader(file, maxTables+1))
	if err == nil && len(tables) > maxTables {
		err = fmt.Errorf("%s has more than %d bytes", path, maxTables)
	}
	if err != nil {
		return nil, fmt.Errorf("read SMBIOS tables: %w", err)
	}
	all, err := OEMStrings(tables)
	if err != nil {
		return nil, fmt.Errorf("read SMBIOS tables: %w", err)
	}
	var found []string
	for _, s := range all {
		if text, ok := strings.CutPrefix(s, provider.SMBIOSBootstrap); ok {
			found = append(found, text)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("the SMBIOS tables have %d bootstrap documents among %d OEM strings, want one: "+
			"the provider writes it when it creates the machine",
			len(found), len(all))
	}
	document, err := base64.StdEncoding.DecodeString(found[0])
	if err != nil {
		return nil, fmt.Errorf("the bootstrap document in the SMBIOS tables is not base64: %w", err)
	}
	return document, nil
}

// The types of structures that matter.
const (
	typeOEMStrings = 11
	typeEnd        = 127
)

// header is a structure's type, the length of its fixed part, and its handle.
const header = 4

// OEMStrings returns the strings of all structures of type 11, in order. A structure has a fixed
// part of the length in its header, then strings, each ended by a zero byte and the last by two.
func OEMStrings(tables []byte) (all []string, err error) {
	for len(tables) > 0 {
		if len(tables) < header {
			return nil, errors.New("a structure is cut off")
		}
		kind, length := tables[0], int(tables[1])
		if length < header || length > len(tables) {
			return nil, fmt.Errorf("a structure of type %d has the length %d, with %d bytes left", kind, length, len(tables))
		}
		rest := tables[length:]
		end := bytes.Index(rest, []byte{0, 0})
		if end < 0 {
			return nil, fmt.Errorf("the strings of a structure of type %d do not end", kind)
		}
		if kind == typeOEMStrings && end > 0 {
			for s := range bytes.SplitSeq(rest[:end], []byte{0}) {
				all = append(all, string(s))
			}
		}
		if kind == typeEnd {
			return all, nil
		}
		tables = rest[end+2:]
	}
	return all, nil
}
