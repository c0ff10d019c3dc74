package leaks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"strings"
	"testing"
)

// proves SEC-6
func TestWhatIsPlantedIsFound(t *testing.T) {
	const value = "hunter2/Zw9-and-more"
	s := search(t, map[string]string{"it": value, "another": "something else"})
	for name, text := range Forms(value) {
		if got := s.In([]byte("before " + text + " after")); len(got) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	for _, in := range []string{"u:" + value, "us:" + value, "usr:" + value + "!"} {
		if got := s.In([]byte(base64.StdEncoding.EncodeToString([]byte(in)))); len(got) == 0 {
			t.Errorf("%q in base64 is not found", in)
		}
	}
	if got := s.In([]byte("nothing of it: hunter2")); len(got) > 0 {
		t.Errorf("found %q where nothing is", got)
	}
	if _, err := For(map[string]string{"it": "ab"}); err == nil {
		t.Error("what is too short would never be found")
	}
}

func search(t *testing.T, values map[string]string) *Search {
	t.Helper()
	s, err := For(values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// proves FILE-2
func TestAKeyIsFound(t *testing.T) {
	small, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]any{"ecdsa": small, "rsa": large} {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		text := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
		values, err := OfKey("the key", []byte(text))
		if err != nil || len(values) != 2 {
			t.Fatalf("%s: looked for are %d, %v", name, len(values), err)
		}
		s := search(t, values)
		for as, planted := range map[string]string{
			"a file": text, "bytes": string(der), "hex": hex.EncodeToString(der),
			"a line of a log":   strings.ReplaceAll(text, "\n", `\n`),
			"a field of JSON":   `{"why":"` + base64.StdEncoding.EncodeToString([]byte("so:"+text)) + `"}`,
			"bytes in a field":  base64.StdEncoding.EncodeToString(der),
			"the lines in it":   strings.ReplaceAll(text, "\n", ""),
			"a part of a frame": "\x0a\x12" + string(der[20:]),
		} {
			if len(s.In([]byte(planted))) == 0 {
				t.Errorf("%s in %s is not found", name, as)
			}
		}
		public, err := x509.MarshalPKIXPublicKey(map[string]any{"ecdsa": &small.PublicKey, "rsa": &large.PublicKey}[name])
		if err != nil {
			t.Fatal(err)
		}
		open := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
		if found := s.In(append(public, open...)); len(found) > 0 {
			t.Errorf("%s: the public key counts as %v", name, found)
		}
	}
	if _, err := OfKey("none", []byte("no key")); err == nil {
		t.Error("what is no key is none")
	}
}
