package secrets

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forms are the encodings of a value that reveal it.
func forms(value string) map[string]string {
	all := map[string]string{
		"plain": value, "hex": hex.EncodeToString([]byte(value)),
		"upper hex": strings.ToUpper(hex.EncodeToString([]byte(value))),
	}
	for name, enc := range map[string]*base64.Encoding{
		"base64":          base64.RawStdEncoding,
		"base64 for URLs": base64.RawURLEncoding,
	} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			all[name+" at "+string(rune('0'+before))] = text[(before*8+5)/6 : (before+len(value))*8/6]
		}
	}
	return all
}

// found returns the encodings of a value that a text contains.
func found(in []byte, value string) []string {
	var out []string
	for name, text := range forms(value) {
		if bytes.Contains(in, []byte(text)) {
			out = append(out, name)
		}
	}
	return out
}

// search searches the files below a directory, except those that may contain a value.
func search(t *testing.T, dir string, values map[string]string, may func(path string) bool) (files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && !d.Type().IsRegular() {
			return nil
		}
		if err != nil {
			return err
		}
		if may(path) {
			return nil
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		files++
		lookAt(t, path, data, values)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}

// lookAt reports each value that a text contains.
func lookAt(t *testing.T, where string, data []byte, values map[string]string) {
	t.Helper()
	for name, value := range values {
		if forms := found(data, value); len(forms) > 0 {
			t.Errorf("%s has %s, as %s", where, name, strings.Join(forms, ", "))
		}
	}
}

// proves SEC-6
func TestTheSearchFindsWhatIsPlanted(t *testing.T) {
	const value = "hunter2/Zw9-and-more"
	for name, text := range forms(value) {
		if got := found([]byte("before "+text+" after"), value); len(got) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	for _, in := range []string{"u:" + value, "us:" + value, "usr:" + value + "!"} {
		if got := found([]byte(base64.StdEncoding.EncodeToString([]byte(in))), value); len(got) == 0 {
			t.Errorf("%q in base64 is not found", in)
		}
	}
	if got := found([]byte("nothing of it: hunter2"), value); len(got) > 0 {
		t.Errorf("found %q where nothing is", got)
	}
}
