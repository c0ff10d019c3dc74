package encryption

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store"
	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

const shard = "0123456789abcdef"

func ringOf(t testing.TB, keys ...Key) Ring {
	t.Helper()
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(k.Line() + "\n")
	}
	r, err := ParseRing(text.String())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// proves SEC-6
func TestWhatIsSealedOpensAgain(t *testing.T) {
	keys := []Key{NewKey(), NewKey(), NewKey()}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SliceOf(rapid.Byte()).Draw(t, "value")
		name := rapid.StringMatching(`[a-z0-9]{1,20}`).Draw(t, "name")
		version := rapid.IntRange(1, 1<<40).Draw(t, "version")
		before := Ring{keys: slices.Clone(keys[:rapid.IntRange(1, 2).Draw(t, "keys")])}
		s, err := before.Seal(shard, store.Secret{Name: name, Version: version, By: "eve"}, value)
		if err != nil {
			t.Fatal(err)
		}
		if s.Key != keys[0].ID || s.By != "eve" {
			t.Fatalf("sealed %+v", s)
		}
		if len(value) > 8 && bytes.Contains(store.Encode(s), value) {
			t.Fatal("the record shows the value")
		}
		// With another key on top, and through the store, it is still read.
		var stored store.Secret
		if err := json.Unmarshal(store.Encode(s), &stored); err != nil {
			t.Fatal(err)
		}
		got, err := before.With(keys[2]).Open(shard, stored)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("opened %q, %v; want %q", got, err, value)
		}
	})
}

// proves SEC-6
func TestNothingOpensInAnothersPlace(t *testing.T) {
	k := NewKey()
	other := NewKey()
	r := ringOf(t, k)
	s, err := r.Seal(shard, store.Secret{Name: "db", Version: 3}, []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}
	sameID := other
	sameID.ID = k.ID
	for what, c := range map[string]struct {
		shard string
		ring  Ring
		spoil func(*store.Secret)
		want  error
	}{
		"another shard":              {"other", r, func(*store.Secret) {}, ErrUnfit},
		"another name":               {shard, r, func(s *store.Secret) { s.Name = "api" }, ErrUnfit},
		"another version":            {shard, r, func(s *store.Secret) { s.Version = 2 }, ErrUnfit},
		"no such key":                {shard, ringOf(t, other), func(*store.Secret) {}, ErrKeyMissing},
		"another key of the same ID": {shard, ringOf(t, sameID), func(*store.Secret) {}, ErrUnfit},
		"the key's name changed": {
			shard, ringOf(t, k, other), func(s *store.Secret) { s.Key = other.ID },
			ErrUnfit,
		},
		"no nonce":             {shard, r, func(s *store.Secret) { s.Nonce = nil }, ErrUnfit},
		"no ciphertext":        {shard, r, func(s *store.Secret) { s.Ciphertext = nil }, ErrUnfit},
		"name and shard moved": {shard + "d", r, func(s *store.Secret) { s.Name = "b" }, ErrUnfit},
		"no keys":              {shard, Ring{}, func(*store.Secret) {}, ErrKeyMissing},
	} {
		spoiled := s
		c.spoil(&spoiled)
		if v, err := c.ring.Open(c.shard, spoiled); !errors.Is(err, c.want) || v != nil {
			t.Errorf("%s: opened %q, %v; want %v", what, v, err, c.want)
		}
	}
	again, err := r.Seal(shard, store.Secret{Name: "db", Version: 3}, []byte("hunter2"))
	if err != nil || bytes.Equal(again.Nonce, s.Nonce) || bytes.Equal(again.Ciphertext, s.Ciphertext) {
		t.Errorf("sealed again it is the same: %v", err)
	}
	if _, err := (Ring{}).Seal(shard, store.Secret{}, nil); !errors.Is(err, ErrNoKeys) {
		t.Errorf("without keys: %v", err)
	}
}

// proves SEC-6
func TestKeysNeverShow(t *testing.T) {
	k := NewKey()
	r := ringOf(t, k)
	_, encoded, _ := strings.Cut(k.Line(), ":")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&shown, verb+verb+verb, k, &k, r)
		fmt.Fprintf(&shown, verb, struct{ R Ring }{r})
	}
	for _, v := range []any{k, r, struct{ K Key }{k}} {
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(out)
	}
	log := slog.New(slog.NewJSONHandler(&shown, nil))
	log.Info("x", "key", k, "ring", r, "fingerprint", k.Fingerprint())
	slog.New(slog.NewTextHandler(&shown, nil)).Info("x", "key", k, "ring", r)
	_, badly := ParseRing(k.Line() + "AAAA\n")
	_, wrong := ParseRing("no name here:" + encoded)
	shown.WriteString(badly.Error() + wrong.Error())
	for what, leak := range map[string]string{
		"base64": encoded, "hex": fmt.Sprintf("%x", raw), "HEX": fmt.Sprintf("%X", raw), "bytes": string(raw),
		"numbers": fmt.Sprintf("%d %d %d", raw[0], raw[1], raw[2]),
	} {
		if strings.Contains(shown.String(), leak) {
			t.Errorf("the key shows as %s in %q", what, shown.String())
		}
	}
	if !strings.Contains(shown.String(), k.ID) {
		t.Error("nothing was printed")
	}
}

func TestKeyFilesThatAreWrong(t *testing.T) {
	k := NewKey()
	for text, want := range map[string]string{
		"k1":                              "line 1: must be ID:BASE64",
		"k1:AAAA":                         "line 1: key k1: must be 32 bytes",
		"# why\n\nk 1:AAAA":               "line 3: must be ID:BASE64",
		k.Line() + "\n" + k.Line():        "line 2: key " + k.ID + " is here twice",
		strings.Repeat("x", 41) + ":AAAA": "line 1: must be ID",
	} {
		if _, err := ParseRing(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error is %v, want one with %q", text, err, want)
		}
	}
	a, b := NewKey(), NewKey()
	r := ringOf(t, b).With(a)
	back, err := ParseRing("# keys\r\n" + strings.ReplaceAll(r.Text(), "\n", " \r\n"))
	if err != nil || !back.Equal(r) || !slices.Equal(back.IDs(), []string{a.ID, b.ID}) {
		t.Errorf("read back %v, %v; want %v", back, err, r)
	}
	if first, err := r.First(); err != nil || first != a {
		t.Errorf("first is %v, %v", first, err)
	}
	if only := r.Only(func(k Key) bool { return k == b }); !only.Equal(ringOf(t, b)) {
		t.Errorf("only %v", only)
	}
	if a.Fingerprint() == b.Fingerprint() || a.Fingerprint() != r.Fingerprints()[0] {
		t.Error("fingerprints do not tell keys apart")
	}
}

// FuzzAnyBitChanged: of a sealed secret no bit can be changed.
//
// proves SEC-6
func FuzzAnyBitChanged(f *testing.F) {
	f.Add([]byte("hunter2"), uint(0), uint(0))
	f.Add([]byte(""), uint(1), uint(3))
	f.Add([]byte(strings.Repeat("x", 100)), uint(2), uint(700))
	f.Add([]byte("v"), uint(3), uint(5))
	k := NewKey()
	r := ringOf(f, k)
	f.Fuzz(func(t *testing.T, value []byte, where, bit uint) {
		s, err := r.Seal(shard, store.Secret{Name: "db-password", Version: 7}, value)
		if err != nil {
			t.Fatal(err)
		}
		flip := func(b []byte) []byte {
			b = slices.Clone(b)
			bit %= uint(len(b)) * 8
			b[bit/8] ^= 1 << (bit % 8)
			return b
		}
		switch where % 4 {
		case 0:
			s.Ciphertext = flip(s.Ciphertext)
		case 1:
			s.Nonce = flip(s.Nonce)
		case 2:
			s.Name = string(flip([]byte(s.Name)))
		case 3:
			s.Version ^= 1 << (bit % 62)
		}
		if v, err := r.Open(shard, s); err == nil {
			t.Fatalf("opened %q although bit %d of %d was changed", v, bit, where%4)
		}
	})
}

// FuzzAnyRecord: whatever stands in etcd is read or refused.
//
// proves SEC-6
func FuzzAnyRecord(f *testing.F) {
	k := NewKey()
	k.ID = "k1"
	r := ringOf(f, k)
	s, err := r.Seal(shard, store.Secret{Name: "db", Version: 1}, []byte("hunter2"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(store.Encode(s))
	f.Add([]byte(`{"schema":1,"key":"k1","nonce":"AAAAAAAAAAAAAAAA","ciphertext":""}`))
	f.Add([]byte(`{"schema":1,"key":"k1","version":-1}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		v, err := store.Decode[store.Secret](store.KV{Value: value})
		if err != nil {
			return
		}
		if got, err := r.Open(shard, v.Record); err == nil &&
			(string(got) != "hunter2" || v.Record.Name != "db" || v.Record.Version != 1) {
			t.Fatalf("opened %q from %q", got, value)
		}
	})
}

// FuzzAnyRing: whatever stands in a key file is read or refused, and read as it is written.
func FuzzAnyRing(f *testing.F) {
	k := NewKey()
	f.Add("# x\n" + k.Line() + "\n")
	f.Add("k:\n:k\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRing(text)
		if err != nil {
			return
		}
		if again, err := ParseRing(r.Text()); err != nil || !again.Equal(r) {
			t.Fatalf("read %v, and again %v, %v", r, again, err)
		}
	})
}
