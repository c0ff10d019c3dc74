package release_test

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/agent/release"
)

func key(t *testing.T) (private string, keys release.Keys) {
	t.Helper()
	private, public, err := release.NewKey("test")
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = release.ReadKeys("# of the tests\n\n" + public + "\n"); err != nil {
		t.Fatal(err)
	}
	return private, keys
}

// A statement must be exactly what a known key signed; anything else is refused.
//
// proves PROV-7
func TestStatements(t *testing.T) {
	private, keys := key(t)
	other, others := key(t)
	st := release.Statement{
		Version: "v1.2.0", Platform: "linux/amd64", Size: 5, SHA256: strings.Repeat("0a", 32), Downgrade: true,
	}
	signed, err := release.Sign(st, private+"\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]release.Keys{"the key": keys, "two keys": others.With(keys)} {
		if got, err := k.Open(signed); err != nil || got != st {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := release.Peek(signed); err != nil || got != st {
		t.Errorf("peek: %+v, %v", got, err)
	}
	if _, err := (release.Keys{}).Open(signed); err == nil || !strings.Contains(err.Error(), "no release key is known") {
		t.Errorf("without a key: %v", err)
	}
	foreign, err := release.Sign(st, other)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"another key":     foreign,
		"another version": strings.Replace(signed, "v1.2.0", "v1.3.0", 1),
		"another hash":    strings.Replace(signed, "0a0a", "0b0b", 1),
		"another size":    strings.Replace(signed, "size 5", "size 6", 1),
		"no downgrade":    strings.Replace(signed, "allowed", "refused", 1),
		"truncated":       signed[:len(signed)/2],
		"no signature":    signed[:strings.Index(signed, "\n\n")+1],
		"empty":           "",
		"too long":        signed + strings.Repeat("x", release.MaxSigned),
	} {
		if got, err := keys.Open(text); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, wrong := range map[string]func(*release.Statement){
		"no version":       func(s *release.Statement) { s.Version = "" },
		"lines in version": func(s *release.Statement) { s.Version = "v1\nsize 1" },
		"no platform":      func(s *release.Statement) { s.Platform = "linux" },
		"no size":          func(s *release.Statement) { s.Size = 0 },
		"huge":             func(s *release.Statement) { s.Size = release.MaxSize + 1 },
		"short hash":       func(s *release.Statement) { s.SHA256 = "0a" },
	} {
		bad := st
		wrong(&bad)
		if _, err := release.Sign(bad, private); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}

// The private key is no public one, and what is neither is an error.
//
// proves PROV-7
func TestKeys(t *testing.T) {
	private, _ := key(t)
	for name, text := range map[string]string{"private": private, "other": "ssh-ed25519 AAAA"} {
		if k, err := release.ReadKeys(text); err == nil {
			t.Errorf("%s: %v", name, k)
		}
	}
	if k, err := release.BuiltIn(); err != nil || k.Known() {
		t.Errorf("built in: %v, %v", k, err)
	}
	if _, err := release.Sign(release.Statement{
		Version: "v1.0.0", Platform: "linux/amd64", Size: 1, SHA256: strings.Repeat("00", 32),
	}, "nonsense"); err == nil {
		t.Error("signed without a key")
	}
}
