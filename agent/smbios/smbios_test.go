package smbios

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
)

// structure returns one with a fixed part of so many bytes, and strings.
func structure(kind byte, fixed int, texts ...string) []byte {
	s := append([]byte{kind, byte(fixed)}, make([]byte, fixed-2)...)
	for _, text := range texts {
		s = append(append(s, text...), 0)
	}
	if len(texts) == 0 {
		s = append(s, 0)
	}
	return append(s, 0)
}

func TestOEMStrings(t *testing.T) {
	tables := slices.Concat(structure(0, 24, "SeaBIOS", "1.16"), structure(11, 5, "one", "two"), structure(32, 11),
		structure(11, 5, strings.Repeat("x", 40000)), structure(127, 4), []byte("rubbish after the end"))
	all, err := OEMStrings(tables)
	if err != nil || len(all) != 3 || all[0] != "one" || all[1] != "two" || len(all[2]) != 40000 {
		t.Errorf("%d strings, %v", len(all), err)
	}
	for what, damaged := range map[string][]byte{
		"no length":       {11, 0, 0, 0, 0, 0},
		"cut in a header": {11, 4},
		"too long":        {11, 200, 0, 0, 0, 0},
		"no end":          {11, 4, 0, 0, 'a'},
	} {
		if all, err := OEMStrings(damaged); err == nil {
			t.Errorf("%s: %q without an error", what, all)
		}
	}
	if all, err := OEMStrings(nil); err != nil || len(all) != 0 {
		t.Errorf("of nothing: %q, %v", all, err)
	}
}

// proves PROV-7
func TestDocument(t *testing.T) {
	write := func(tables []byte) string {
		path := filepath.Join(t.TempDir(), "DMI")
		if err := os.WriteFile(path, tables, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const document = `{"schema":1}`
	ours := provider.SMBIOSBootstrap + base64.StdEncoding.EncodeToString([]byte(document))
	got, err := Document(write(structure(11, 5, "Vendor", ours)))
	if err != nil || string(got) != document {
		t.Errorf("%q, %v", got, err)
	}
	for path, says := range map[string]string{
		filepath.Join(t.TempDir(), "none"):                            "shows no SMBIOS tables",
		t.TempDir():                                                   "is a directory",
		write(structure(11, 5, "Vendor")):                             "0 bootstrap documents among 1 OEM strings",
		write(structure(11, 5, ours, ours)):                           "2 bootstrap documents",
		write(structure(11, 5, provider.SMBIOSBootstrap+"no base64")): "is not base64",
		write([]byte{11, 0, 0, 0}):                                    "has the length 0",
		write(structure(11, 5, strings.Repeat("x", maxTables))):       "more than",
	} {
		if _, err := Document(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// Reading ends for any content of the tables.
func FuzzOEMStrings(f *testing.F) {
	f.Add(slices.Concat(structure(0, 24, "SeaBIOS"), structure(11, 5, "one", "two"), structure(127, 4)))
	f.Add([]byte{11, 4, 0, 0, 'a'})
	f.Fuzz(func(t *testing.T, tables []byte) {
		all, err := OEMStrings(tables)
		if err != nil && all != nil {
			t.Errorf("%q, and %v", all, err)
		}
		total := 0
		for _, s := range all {
			total += len(s)
		}
		if total > len(tables) {
			t.Errorf("%d bytes of strings from %d bytes", total, len(tables))
		}
	})
}
