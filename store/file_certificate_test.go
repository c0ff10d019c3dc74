package store_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/filetemplate"
)

// certified returns a group with one file that is a valid certificate, changed.
func certified(change func(*store.File)) store.Group {
	g := validGroup()
	g.Vars = map[string]string{"domain": "internal"}
	f := store.File{Path: "/etc/app/tls.crt", Certificate: &store.FileCertificate{
		Authority: "web", Names: []string{"{{.Facts.instance}}.{{.Vars.domain}}"}, Key: "/etc/app/tls.key",
	}}
	change(&f)
	g.Files = []store.File{f}
	g.Complete()
	return g
}

func certificate(change func(*store.FileCertificate)) func(*store.File) {
	return func(f *store.File) { change(f.Certificate) }
}

// keyBeside puts the key into the file of the certificate.
func keyBeside(mode string) func(*store.File) {
	return func(f *store.File) { f.Certificate.Key, f.Mode = f.Path, mode }
}

// Each value of a certificate is judged by itself, and shown where it is refused.
//
// proves FILE-2
func TestBoundsOfCertificates(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	authority := func(name string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.Authority = name })
	}
	names := func(names ...string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.Names = names })
	}
	key := func(path string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.Key = path })
	}
	keyMode := func(mode string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.KeyMode = mode })
	}
	keyType := func(kind string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.KeyType = kind })
	}
	bundle := func(path string) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.Bundle = path })
	}
	lifetime := func(d time.Duration) func(*store.File) {
		return certificate(func(c *store.FileCertificate) { c.Lifetime = store.Duration(d) })
	}
	change := func(c store.FileChange) func(*store.File) { return func(f *store.File) { f.OnChange = c } }
	most := store.MaxCertificateLife.D()
	for _, c := range []struct {
		field  string
		change func(*store.File)
		shown  string // with the error; "": it is allowed
	}{
		{"certificate.authority", authority("a"), ""},
		{"certificate.authority", authority("z"), ""},
		{"certificate.authority", authority("a1-b"), ""},
		{"certificate.authority", authority(long(40)), ""},
		{"certificate.authority", authority(long(41)), `"` + long(41) + `"`},
		{"certificate.authority", authority(""), `""`},
		{"certificate.authority", authority("1a"), `"1a"`},
		{"certificate.authority", authority("-a"), `"-a"`},
		{"certificate.authority", authority("Web"), `"Web"`},
		{"certificate.authority", authority("{a"), `"{a"`},
		{"certificate.authority", authority("a_b"), `"a_b"`},
		{"certificate.names", names("a"), ""},
		{"certificate.names", names(slices.Repeat([]string{"a"}, 16)...), ""},
		{"certificate.names", names(slices.Repeat([]string{"a"}, 17)...), fmt.Sprint(slices.Repeat([]string{"a"}, 17))},
		{"certificate.names", names(), "[]"},
		{"certificate.key", key("${dir}/tls.key"), ""},
		{"certificate.key", key(""), `""`},
		{"certificate.key", key("tls.key"), `"tls.key"`},
		{"certificate.key_mode", keyMode("0640"), ""},
		{"certificate.key_mode", keyMode("640"), ""},
		{"certificate.key_mode", keyMode("0644"), `"0644"`},
		{"certificate.key_mode", keyMode("9990"), `"9990"`},
		{"certificate.key_mode", keyBeside("0640"), ""},
		{"certificate.key_mode", keyBeside("0644"), `"0600"`}, // the key has the permissions of the file
		{"certificate.key_type", keyType(store.KeyECDSA), ""},
		{"certificate.key_type", keyType(store.KeyRSA), ""},
		{"certificate.key_type", keyType("ed25519"), `"ed25519"`},
		{"certificate.bundle", bundle(""), ""},
		{"certificate.bundle", bundle("/etc/app/ca.crt"), ""},
		{"certificate.bundle", bundle("ca.crt"), `"ca.crt"`},
		{"certificate.lifetime", lifetime(time.Minute), ""},
		{"certificate.lifetime", lifetime(most), ""},
		{"certificate.lifetime", lifetime(time.Minute - 1), "59.999999999s"},
		{"certificate.lifetime", lifetime(most + 1), (most + 1).String()},
		{"on_change", change(store.FileChange{Do: store.FileReload}), ""},
		{"on_change", change(store.FileChange{Do: store.FileRun, Run: []string{"./again"}}), ""},
		{"on_change", change(store.FileChange{Do: store.FileRestart}), `"restart"`},
	} {
		g := certified(c.change)
		err := g.Validate()
		wrong := fieldErrors(err)
		switch {
		case c.shown == "" && err != nil:
			t.Errorf("%s: %v", c.field, err)
		case c.shown != "" && (len(wrong) != 1 || wrong[0].Path != "files[0]."+c.field || wrong[0].Value != c.shown ||
			wrong[0].Rule != "FILE-2"):
			t.Errorf("%s: %v, want that %s is refused", c.field, err, c.shown)
		}
	}
}

// What an operator leaves out gets its default, and what the operator says stays.
//
// proves FILE-2
func TestDefaultsOfCertificates(t *testing.T) {
	full := store.FileCertificate{KeyMode: "0640", KeyType: store.KeyRSA, Lifetime: store.Duration(time.Hour)}
	for name, c := range map[string]struct {
		change func(*store.File)
		mode   string
		want   store.FileCertificate
	}{
		"nothing said": {
			func(*store.File) {}, "0644",
			store.FileCertificate{KeyMode: "0600", KeyType: store.KeyECDSA, Lifetime: store.Duration(24 * time.Hour)},
		},
		"the key in the same file": {
			keyBeside(""), "0600",
			store.FileCertificate{KeyMode: "0600", KeyType: store.KeyECDSA, Lifetime: store.Duration(24 * time.Hour)},
		},
		"all said": {certificate(func(c *store.FileCertificate) {
			c.KeyMode, c.KeyType, c.Lifetime = full.KeyMode, full.KeyType, full.Lifetime
		}), "0644", full},
	} {
		f := certified(c.change).Files[0]
		got := store.FileCertificate{
			KeyMode: f.Certificate.KeyMode, KeyType: f.Certificate.KeyType, Lifetime: f.Certificate.Lifetime,
		}
		if !reflect.DeepEqual(got, c.want) || f.Mode != c.mode || f.Settle != 0 {
			t.Errorf("%s: %+v of mode %s, want %+v of mode %s", name, got, f.Mode, c.want, c.mode)
		}
		if f.Kind() != "certificate" {
			t.Errorf("%s: the content is of kind %q", name, f.Kind())
		}
	}
}

// A name that cannot be made, or is no name of a host, is refused when the group is applied, at its
// place in the template.
//
// proves FILE-2
func TestTemplatesOfCertificateNames(t *testing.T) {
	for text, says := range map[string]string{
		"{{.Facts.group}}-{{.Facts.slot}}.{{.Vars.domain}}": "",
		"{{host .Facts.address}}":                           "",
		"{{.Facts.instance":                                 "line 1, column 1: unclosed action",
		"a.\n{{.Vars.doman}}":                               "line 2, column 8: there is no .Vars.doman, there is domain",
		"{{if false}}{{.Vars.doman}}{{end}}a":               "line 1, column 20: there is no .Vars.doman, there is domain",
		"a{{range .Peers}}{{end}}":                          ".Peers: a certificate has no names of others",
		"{{.Facts.group}}_1":                                `"group_1"`,
		"*.{{.Vars.domain}}":                                `"*.internal"`,
		"{{.Facts.address}}":                                `"192.0.2.1:20001"`,
	} {
		err := certified(certificate(func(c *store.FileCertificate) { c.Names = []string{"a", text} })).Validate()
		wrong := fieldErrors(err)
		if says == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if len(wrong) != 1 || wrong[0].Path != "files[0].certificate.names[1]" || wrong[0].Rule != "FILE-2" ||
			wrong[0].Value != says || !strings.Contains(wrong[0].Allowed, "becomes a host name in lower case") {
			t.Errorf("%s: %v, want %s", text, err, says)
			continue
		}
		var at *filetemplate.Error
		if _, err := filetemplate.Parse(text); errors.As(err, &at) && (wrong[0].Line != 1 || wrong[0].Column != 1) {
			t.Errorf("%s: the place is line %d, column %d", text, wrong[0].Line, wrong[0].Column)
		}
		if strings.HasPrefix(says, "line 2") && (wrong[0].Line != 2 || wrong[0].Column != 8) {
			t.Errorf("%s: the place is line %d, column %d", text, wrong[0].Line, wrong[0].Column)
		}
	}
}

// The names of an instance's certificate are made from its own facts, each once and in order.
//
// proves FILE-2
func TestCertificateNames(t *testing.T) {
	data := filetemplate.Data{
		Vars:  map[string]string{"domain": "internal"},
		Facts: map[string]any{"instance": "web-0-a", "address": "192.0.2.7:80"},
	}
	for _, c := range []struct {
		templates []string
		want      string // the names, or how the error begins
	}{
		{nil, ""},
		{[]string{"{{.Facts.instance}}.{{.Vars.domain}}", "{{host .Facts.address}}"}, "192.0.2.7 web-0-a.internal"},
		{[]string{"b", "a", "b", "{{.Vars.domain}}"}, "a b internal"},
		{[]string{"a", "{{"}, "names[1]: line 1, column 1: "},
		{[]string{"a", "b", "{{.Facts.zone}}"}, `names[2]: line 1, column 9: there is no`},
		{[]string{"{{.Vars.domain}}."}, `names[0]: "internal.": must become a host name`},
	} {
		names, err := store.CertificateNames(c.templates, data)
		switch wrong := strings.HasPrefix(c.want, "names["); {
		case wrong && (err == nil || !strings.HasPrefix(err.Error(), c.want) || names != nil):
			t.Errorf("%q: %q, %v; want an error that begins with %s", c.templates, names, err, c.want)
		case !wrong && (err != nil || strings.Join(names, " ") != c.want):
			t.Errorf("%q: %q, %v; want %s", c.templates, names, err, c.want)
		}
	}
}

// A certificate names hosts and addresses in the one form that others compare with.
//
// proves FILE-2
func TestWhatACertificateMayName(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	longest := strings.Join([]string{long(63), long(63), long(63), long(61)}, ".")
	for _, name := range []string{
		"a", "web-0.internal", "1a", "a1", "1.a", "9-9.a-z", "xn--bcher-kva.example", long(63), longest,
		"192.0.2.1", "127.0.0.1", "2001:db8::1",
	} {
		if !store.IsCertificateName(name) {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range []string{
		"", ".", "A", "a_b", "a b", "*.a", "-a", "a-", "a.-b", "a-.b", "a..b", ".a", "a.", long(64), longest + "x",
		"192.0.2.300", "192.0.2", "1", "0.0.0.0", "::", "fe80::1%eth0", "2001:DB8::1", "2001:db8:0::1", "192.0.2.1:80",
	} {
		if store.IsCertificateName(name) {
			t.Errorf("%s is allowed", name)
		}
	}
}

// A certificate is replaced when what is in it changes, or where its key is, and not for anything
// else. The version is the same in each release: an upgrade replaces no certificate.
//
// proves FILE-2
func TestVersionOfACertificate(t *testing.T) {
	base := func() (*store.FileCertificate, *store.Instance) {
		i := &store.Instance{ID: "web-0-a", Group: "web", Zone: "a", Address: "192.0.2.7:80"}
		i.Spec.Vars = map[string]string{"domain": "internal"}
		return &store.FileCertificate{
			Authority: "web", Names: []string{"{{.Facts.zone}}.{{.Vars.domain}}", "{{host .Facts.address}}"},
			Key: "/etc/app/tls.key", KeyMode: "0600", KeyType: store.KeyECDSA, Lifetime: store.Duration(time.Hour),
		}, i
	}
	c, i := base()
	first, err := c.VersionFor(i, "issuer")
	if err != nil || first != "860e42d5cec46260" {
		t.Fatalf("the version is %s, %v", first, err)
	}
	seen := map[string]string{first: "the first one"}
	for what, change := range map[string]func(*store.FileCertificate, *store.Instance){
		"another instance":  func(_ *store.FileCertificate, i *store.Instance) { i.ID = "web-0-b" },
		"another variable":  func(_ *store.FileCertificate, i *store.Instance) { i.Spec.Vars["domain"] = "example" },
		"another zone":      func(_ *store.FileCertificate, i *store.Instance) { i.Zone = "b" },
		"another address":   func(_ *store.FileCertificate, i *store.Instance) { i.Address = "192.0.2.8:80" },
		"another name":      func(c *store.FileCertificate, _ *store.Instance) { c.Names = c.Names[:1] },
		"another key type":  func(c *store.FileCertificate, _ *store.Instance) { c.KeyType = store.KeyRSA },
		"another lifetime":  func(c *store.FileCertificate, _ *store.Instance) { c.Lifetime *= 2 },
		"another authority": func(c *store.FileCertificate, _ *store.Instance) { c.Authority = "api" },
		"another key":       func(c *store.FileCertificate, _ *store.Instance) { c.Key = "/etc/app/key" },
	} {
		c, i := base()
		change(c, i)
		got, err := c.VersionFor(i, "issuer")
		if was, twice := seen[got]; twice || err != nil {
			t.Errorf("%s: version %s, %v, which %s has", what, got, err, was)
		}
		seen[got] = what
	}
	if got, err := c.VersionFor(i, "another"); err != nil || seen[got] != "" {
		t.Errorf("of another issuer: %s, %v", got, err)
	}
	c.KeyMode, c.Bundle, i.Slot, i.Group = "0640", "/etc/app/ca.crt", 3, "api"
	if got, err := c.VersionFor(i, "issuer"); err != nil || got != first {
		t.Errorf("with what is not in a certificate: %s, %v, want %s", got, err, first)
	}
	i.Address = ""
	if got, err := c.VersionFor(i, "issuer"); err == nil || got != "" {
		t.Errorf("without the address that it names: %q", got)
	}
}

// A template that uses the address of a machine waits until the address is known.
//
// proves FILE-1, FILE-2
func TestFactsForTemplates(t *testing.T) {
	i := store.Instance{ID: "web-3-a", Group: "web", Slot: 3, Zone: "a"}
	want := map[string]any{"instance": "web-3-a", "group": "web", "slot": 3, "zone": "a"}
	if got := i.TemplateFacts(); !maps.Equal(got, want) {
		t.Errorf("facts %v, want %v", got, want)
	}
	i.Address, want["address"] = "192.0.2.7:80", "192.0.2.7:80"
	if got := i.TemplateFacts(); !maps.Equal(got, want) {
		t.Errorf("facts %v, want %v", got, want)
	}
	if got := slices.Sorted(maps.Keys(want)); !slices.Equal(got, filetemplate.Facts) {
		t.Errorf("an instance has the facts %v, templates may use %v", got, filetemplate.Facts)
	}
}

// A certificate takes the places of its key and its bundle, too.
//
// proves FILE-2
func TestPathsOfACertificate(t *testing.T) {
	withBundle := certificate(func(c *store.FileCertificate) { c.Bundle = "/etc/app/ca.crt" })
	for name, c := range map[string]struct {
		change func(*store.File)
		want   []store.FilePath
	}{
		"a key beside it": {func(*store.File) {}, []store.FilePath{
			{Field: "path", Path: "/etc/app/tls.crt"}, {Field: "certificate.key", Path: "/etc/app/tls.key"},
		}},
		"the key in it": {keyBeside(""), []store.FilePath{{Field: "path", Path: "/etc/app/tls.crt"}}},
		"a bundle": {withBundle, []store.FilePath{
			{Field: "path", Path: "/etc/app/tls.crt"},
			{Field: "certificate.key", Path: "/etc/app/tls.key"},
			{Field: "certificate.bundle", Path: "/etc/app/ca.crt"},
		}},
		"a text": {
			func(f *store.File) { f.Certificate, f.Text = nil, new(string) },
			[]store.FilePath{{Field: "path", Path: "/etc/app/tls.crt"}},
		},
	} {
		f := certified(c.change).Files[0]
		if got := f.Paths(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Certificates and their bundles count in what a group may have, and no two files share a place.
//
// proves FILE-1, FILE-2
func TestListsOfCertificates(t *testing.T) {
	text := func(path string, size int) store.File {
		content := strings.Repeat("x", size)
		return store.File{Path: path, Text: &content}
	}
	signed := func(n int, bundle string) store.File {
		return store.File{Path: fmt.Sprintf("/c%d", n), Certificate: &store.FileCertificate{
			Authority: "web", Names: []string{"a"}, Key: fmt.Sprintf("/k%d", n), Bundle: bundle,
		}}
	}
	texts := func(n int, more ...store.File) []store.File {
		for i := range n {
			more = append(more, text(fmt.Sprintf("/t%d", i), 0))
		}
		return more
	}
	for name, c := range map[string]struct {
		files []store.File
		wrong []string // the whole errors
	}{
		"the most certificates": {[]store.File{signed(0, ""), signed(1, ""), signed(2, ""), signed(3, "")}, nil},
		"one more": {
			[]store.File{signed(0, ""), signed(1, ""), signed(2, ""), signed(3, ""), signed(4, "")},
			[]string{"files: 5 certificates: must be at most 4 certificates (FILE-1)"},
		},
		"the most files, some of them bundles": {texts(28, signed(0, "/b0"), signed(1, "/b1")), nil},
		"a bundle too many": {
			texts(29, signed(0, "/b0"), signed(1, "/b1")),
			[]string{"files: 33 files: must be at most 32 files, bundles of certificates included (FILE-1)"},
		},
		"certificates without bundles":                  {texts(30, signed(0, ""), signed(1, "")), nil},
		"the most text, names of certificates included": {[]store.File{signed(0, ""), text("/t", 64<<10-1)}, nil},
		"more text": {
			[]store.File{signed(0, ""), text("/t", 64<<10)},
			[]string{"files: 65537 bytes of text and templates: must be at most 64 KiB (FILE-1)"},
		},
		"a key in the place of another file": {
			[]store.File{text("/k1", 0), signed(1, "")},
			[]string{`files[1].certificate.key: "/k1": must be another path than files[0] has (FILE-1)`},
		},
		"a bundle in the place of its certificate": {
			[]store.File{signed(0, "/c0")},
			[]string{`files[0].certificate.bundle: "/c0": must be another path than files[0] has (FILE-1)`},
		},
		"one bundle for two": {
			[]store.File{signed(0, "/b"), signed(1, "/b")},
			[]string{`files[1].certificate.bundle: "/b": must be another path than files[0] has (FILE-1)`},
		},
		"three files in one place": {
			[]store.File{text("/a", 0), text("/a", 0), text("/a", 0)},
			[]string{
				`files[1].path: "/a": must be another path than files[0] has (FILE-1)`,
				`files[2].path: "/a": must be another path than files[0] has (FILE-1)`,
			},
		},
	} {
		g := validGroup()
		g.Files = c.files
		g.Complete()
		if got := saidOf(g.Validate()); !slices.Equal(got, c.wrong) {
			t.Errorf("%s: %q, want %q", name, got, c.wrong)
		}
	}
}

// saidOf returns what is said of each field that is wrong.
func saidOf(err error) (out []string) {
	for _, e := range fieldErrors(err) {
		out = append(out, e.Error())
	}
	return out
}
