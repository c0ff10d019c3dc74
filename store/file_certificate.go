package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store/filetemplate"
)

// FileCertificate makes a file a certificate of the instance, over a key that is made on its
// machine (FILE-2).
type FileCertificate struct {
	Authority string   `json:"authority"` // the name of one that the coordinators have
	Names     []string `json:"names"`     // templates of host names and IP addresses
	// Key is the path of the key. The path of the file itself: one file has both.
	Key      string   `json:"key"`
	KeyMode  string   `json:"key_mode"`         // octal
	KeyType  string   `json:"key_type"`         // one of KeyTypes
	Bundle   string   `json:"bundle,omitempty"` // the path of the authorities to trust; empty: they are written nowhere
	Lifetime Duration `json:"lifetime"`
}

// The types of keys.
const (
	KeyECDSA = "ecdsa" // P-256
	KeyRSA   = "rsa"   // 2048 bits
)

// Bounds of certificates. Each request for one takes an authority's signature.
const (
	MaxCertificates     = 4  // of a group
	MaxCertificateNames = 16 // of one certificate
	MinCertificateLife  = Duration(time.Minute)
	MaxCertificateLife  = Duration(5 * 365 * 24 * time.Hour)
	usualLife           = Duration(24 * time.Hour)
)

// Version identifies a certificate of an instance and its signer. A certificate of another version
// is replaced at once.
func (c *FileCertificate) Version(instance string, names []string, issuer string) string {
	sum := sha256.Sum256(Encode([]any{instance, names, c.KeyType, c.Lifetime.D(), c.Authority, c.Key, issuer}))
	return hex.EncodeToString(sum[:8])
}

// complete fills in the defaults.
func (c *FileCertificate) complete() {
	if c == nil {
		return
	}
	if c.KeyMode == "" {
		c.KeyMode = "0600"
	}
	if c.KeyType == "" {
		c.KeyType = KeyECDSA
	}
	if c.Lifetime == 0 {
		c.Lifetime = usualLife
	}
}

// names returns the templates of a certificate's names.
func (f *File) names() []string {
	if f.Certificate == nil {
		return nil
	}
	return f.Certificate.Names
}

// holdsKey reports whether the file has a key beside its certificate.
func (f *File) holdsKey() bool { return f.Certificate != nil && f.Certificate.Key == f.Path }

// FilePath is a place that a file takes, and the field that names it.
type FilePath struct{ Field, Path string }

// Paths returns all places that the file takes.
func (f *File) Paths() []FilePath {
	out := []FilePath{{"path", f.Path}}
	if c := f.Certificate; c != nil {
		if !f.holdsKey() {
			out = append(out, FilePath{"certificate.key", c.Key})
		}
		if c.Bundle != "" {
			out = append(out, FilePath{"certificate.bundle", c.Bundle})
		}
	}
	return out
}

func countCertificates(files []File) (n int) {
	for i := range files {
		if files[i].Certificate != nil {
			n++
		}
	}
	return n
}

func countBundles(files []File) (n int) {
	for i := range files {
		if c := files[i].Certificate; c != nil && c.Bundle != "" {
			n++
		}
	}
	return n
}

// certificateField returns a field of each certificate.
func certificateField(name, kind, def, allowed, doc string, value func(*FileCertificate) any,
	ok func(*File) bool,
) Field {
	return fileField("certificate."+name, kind, def, allowed, "FILE-2", doc,
		func(f *File) any { return value(f.Certificate) },
		func(f *File) bool { return f.Certificate == nil || ok(f) })
}

// certificateFields returns the fields of a file that is a certificate.
func certificateFields() []Field {
	return []Field{
		certificateField("authority", "string", "",
			"the name of an authority in the file that --providers of the coordinators names",
			"Which authority signs it.",
			func(c *FileCertificate) any { return c.Authority },
			func(f *File) bool { return isAuthorityName(f.Certificate.Authority) }),
		certificateField("names", "list of strings", "", fmt.Sprintf("1 to %d templates over .Vars and .Facts",
			MaxCertificateNames),
			"What it names: host names and IP addresses, each made by a template: "+
				"`{{.Facts.instance}}.web.internal`, `{{host .Facts.address}}`.",
			func(c *FileCertificate) any { return c.Names },
			func(f *File) bool { n := len(f.Certificate.Names); return n > 0 && n <= MaxCertificateNames }),
		certificateField("key", "string", "",
			"an absolute path as path has it, or the same path: then one file has both",
			"Where its private key is. The key is made on the machine and never leaves it.",
			func(c *FileCertificate) any { return c.Key },
			func(f *File) bool { return filePathOK(f.Certificate.Key) }),
		certificateField("key_mode", "string", "0600",
			"three octal digits of which the last is 0, like 0640; so is mode where one file has both",
			"Permissions of the key.",
			func(c *FileCertificate) any { return c.KeyMode },
			func(f *File) bool {
				private := func(mode string) bool { return modeForm.MatchString(mode) && strings.HasSuffix(mode, "0") }
				return private(f.Certificate.KeyMode) && (!f.holdsKey() || private(f.Mode))
			}),
		certificateField("key_type", "string", KeyECDSA, "ecdsa (P-256) or rsa (2048 bits)",
			"What kind of key is made.",
			func(c *FileCertificate) any { return c.KeyType },
			func(f *File) bool { return oneOf(f.Certificate.KeyType, KeyECDSA, KeyRSA) }),
		certificateField("bundle", "string", "none", "an absolute path as path has it",
			"Where the certificates of the authorities to trust are written, as PEM.",
			func(c *FileCertificate) any { return c.Bundle },
			func(f *File) bool { return f.Certificate.Bundle == "" || filePathOK(f.Certificate.Bundle) }),
		certificateField("lifetime", "duration", usualLife.String(),
			MinCertificateLife.String()+" to "+MaxCertificateLife.String(),
			"How long it lasts. Another one comes after two thirds of that, with what on_change says.",
			func(c *FileCertificate) any { return c.Lifetime },
			func(f *File) bool {
				return f.Certificate.Lifetime >= MinCertificateLife && f.Certificate.Lifetime <= MaxCertificateLife
			}),
	}
}

// isAuthorityName reports whether an authority may have this name. It is what the file of providers
// allows.
func isAuthorityName(name string) bool {
	if name == "" || len(name) > 40 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// VersionFor returns the version of an instance's certificate, by its record.
func (c *FileCertificate) VersionFor(i *Instance, issuer string) (string, error) {
	names, err := CertificateNames(c.Names, filetemplate.Data{Vars: i.Spec.Vars, Facts: i.TemplateFacts()})
	if err != nil {
		return "", err
	}
	return c.Version(i.ID, names, issuer), nil
}

// TemplateFacts returns the facts of an instance for templates of files and of certificates' names.
// A fact that is not known yet is left out: templates that use it wait for it.
func (i *Instance) TemplateFacts() map[string]any {
	facts := map[string]any{"instance": i.ID, "group": i.Group, "slot": i.Slot, "zone": i.Zone}
	if i.Address != "" {
		facts["address"] = i.Address
	}
	return facts
}

// CertificateNames renders the names of a certificate, in order and each once. The error is the one
// of the first that cannot be rendered or is no name.
func CertificateNames(templates []string, data filetemplate.Data) ([]string, error) {
	var names []string
	for i, text := range templates {
		t, err := filetemplate.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("names[%d]: %w", i, err)
		}
		name, err := t.Render(data)
		if err != nil {
			return nil, fmt.Errorf("names[%d]: %w", i, err)
		}
		if !IsCertificateName(string(name)) {
			return nil, fmt.Errorf("names[%d]: %.100q: must become a host name in lower case without wildcard, "+
				"or an IP address", i, name)
		}
		names = append(names, string(name))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// IsCertificateName reports whether a certificate may have a name: an IP address, or a host name in
// lower case.
func IsCertificateName(name string) bool {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Zone() == "" && a.String() == name && !a.IsUnspecified()
	}
	if len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != "" // else it is a mistaken address
}

// nameErrors renders the names of a certificate for an imagined instance.
func (g *Group) nameErrors(i int) []*FieldError {
	var errs []*FieldError
	for n, text := range g.Files[i].names() {
		wrong := func(err error) {
			e := templateError(i, err)
			e.Path, e.Rule = fmt.Sprintf("files[%d].certificate.names[%d]", i, n), "FILE-2"
			e.Allowed = "a template that becomes a host name in lower case without wildcard, or an IP address"
			errs = append(errs, &e)
		}
		t, err := filetemplate.Parse(text)
		if err == nil && t.UsesPeers() {
			err = errors.New(".Peers: a certificate has no names of others")
		}
		if err == nil {
			err = t.Check(g.Vars, 0)
		}
		var name []byte
		if err == nil {
			name, err = t.Sample(g.Vars)
		}
		if err == nil && !IsCertificateName(string(name)) {
			err = fmt.Errorf("%.100q", name)
		}
		if err != nil {
			wrong(err)
		}
	}
	return errs
}
