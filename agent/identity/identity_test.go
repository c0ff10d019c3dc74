package identity

import (
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// name draws what can be part of an identity.
func name() *rapid.Generator[string] {
	return rapid.StringMatching(`[A-Za-z0-9._-]{1,100}`).Filter(func(s string) bool {
		return strings.Trim(s, ".") != ""
	})
}

func TestNamesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Identity{
			Shard: name().Draw(t, "shard"),
			Role:  rapid.SampledFrom([]Role{Agent, Coordinator}).Draw(t, "role"), Name: name().Draw(t, "name"),
		}
		if err := i.Validate(); err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(i.String()); err != nil || back != i {
			t.Fatalf("%s came back as %s: %v", i, back, err)
		}
		// A certificate carries it through the standard library's reading of URLs.
		u, err := url.Parse(i.String())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Of(&x509.Certificate{URIs: []*url.URL{u}}); err != nil || back != i {
			t.Fatalf("%s came back from a certificate as %s: %v", i, back, err)
		}
	})
}

func TestNothingElseIsAnIdentity(t *testing.T) {
	for _, uri := range []string{
		"", "leasehold://", "leasehold://s/agent", "leasehold://s/agent/", "leasehold://s//a", "leasehold:///agent/a",
		"leasehold://s/agent/a/b",
		"leasehold://s/agent/..", "leasehold://s/agent/a?b", "leasehold://s/agent/a#b", "leasehold://u@s/agent/a",
		"leasehold://s:1/agent/a",
		"leasehold://s/agent/%61", "Leasehold://s/agent/a", "https://s/agent/a", "leasehold://s/Agent/a",
		"leasehold://s/operator/a",
		"leasehold://s/agent/a b", "leasehold://s/agent/ä", "leasehold://s/agent/a\x00", " leasehold://s/agent/a",
		"leasehold://s/agent/" + strings.Repeat("a", maxName+1),
	} {
		if i, err := Parse(uri); !errors.Is(err, ErrNoIdentity) {
			t.Errorf("%q is %+v, %v", uri, i, err)
		}
	}
	one := Identity{Shard: "s", Role: Agent, Name: "a"}.URI()
	for _, uris := range [][]*url.URL{nil, {one, one}, {{Opaque: "leasehold://s/agent/a"}, one}} {
		if i, err := Of(&x509.Certificate{URIs: uris}); !errors.Is(err, ErrNoIdentity) {
			t.Errorf("a certificate with %d URIs names %s, %v", len(uris), i, err)
		}
	}
}

// Every identity that parses has only one spelling, so that names can be compared as texts.
func FuzzParse(f *testing.F) {
	f.Add("leasehold://5ead/agent/web-1-a7")
	f.Add("leasehold://5ead/coordinator/coord-a")
	f.Add("leasehold://5ead/agent/../a")
	f.Fuzz(func(t *testing.T, uri string) {
		i, err := Parse(uri)
		if err != nil {
			return
		}
		if i.String() != uri || i.Validate() != nil {
			t.Fatalf("%q parses as %+v, which is %q", uri, i, i)
		}
		u, err := url.Parse(uri)
		if err != nil || u.User != nil || u.Port() != "" || u.RawQuery != "" || u.Fragment != "" || u.Host != i.Shard ||
			u.Path != "/"+string(i.Role)+"/"+i.Name {
			t.Fatalf("%q is read otherwise as a URL: %+v, %v", uri, u, err)
		}
	})
}

func TestHostsOfAShardAreOneAndOfTwoAreTwo(t *testing.T) {
	a, b := Identity{Shard: "s", Role: Coordinator, Name: "a"}, Identity{Shard: "s", Role: Coordinator, Name: "b"}
	if a.Host() != b.Host() || a.Host() != Host("s", Coordinator) {
		t.Errorf("two replicas have the hosts %s and %s", a.Host(), b.Host())
	}
	if a.Host() == Host("r", Coordinator) || a.Host() == Host("s", Agent) {
		t.Errorf("another identity has %s too", a.Host())
	}
}
