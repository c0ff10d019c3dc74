package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/pki"
	"github.com/leasehold/leasehold/tests/faults/cloud"
	"github.com/leasehold/leasehold/tests/faults/history"
	"github.com/leasehold/leasehold/tests/leaks"
)

// The certificate of each machine of a group, by the names of its files. It is renewed within a
// run.
const (
	fileOfCertificate = "tls.crt"
	fileOfKey         = "tls.key"
	fileOfBundle      = "ca.crt"

	authorityName   = "web"
	authorityDomain = "internal" // as the cast has it
)

// CertificateLife is how long the certificates last.
const CertificateLife = time.Minute

// certificateFile is a group's file of certificates.
func certificateFile(group string) string {
	at := func(name string) string { return fmt.Sprintf("\"${dir}/%s/%s\"", cloud.Managed, name) }
	return fmt.Sprintf("- {path: %s, certificate: {authority: %s, names: [\"{{.Facts.instance}}.%s.%s\"], key: %s, "+
		"bundle: %s, lifetime: %s}}", at(fileOfCertificate), authorityName, group, authorityDomain, at(fileOfKey),
		at(fileOfBundle), CertificateLife)
}

// wholePEM says what is wrong with a file that is to have blocks of a kind and nothing else.
func wholePEM(kind string, parse func([]byte) error) func(string) string {
	return func(content string) string {
		rest, blocks := []byte(content), 0
		for len(rest) > 0 {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil || block.Type != kind {
				return fmt.Sprintf("%d bytes, of which %d are no block of %s", len(content), len(rest), kind)
			}
			if err := parse(block.Bytes); err != nil {
				return fmt.Sprintf("a block of %s of which %v", kind, err)
			}
			blocks++
		}
		if blocks == 0 {
			return "it is empty"
		}
		return ""
	}
}

func parseCertificate(der []byte) error {
	_, err := x509.ParseCertificate(der)
	return err
}

func parseKey(der []byte) error {
	_, err := x509.ParsePKCS8PrivateKey(der)
	return err
}

// certified returns what is wrong with a machine's certificate in the end; "" if nothing.
func (c *Cluster) certified(id string) string {
	text, _ := c.Cloud.File(id, fileOfCertificate)
	key, _ := c.Cloud.File(id, fileOfKey)
	bundle, _ := c.Cloud.File(id, fileOfBundle)
	if _, err := tls.X509KeyPair([]byte(text), []byte(key)); err != nil {
		return fmt.Sprintf("certificate and key of %s: %v", id, err)
	}
	leaf, err := cloud.Leaf(text)
	if err != nil {
		return fmt.Sprintf("the certificate of %s: %v", id, err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(bundle))
	name := fmt.Sprintf("%s.%s.%s", id, c.GroupOf(id), authorityDomain)
	if _, err = leaf.Verify(x509.VerifyOptions{Roots: trusted, DNSName: name}); err != nil {
		return fmt.Sprintf("the certificate of %s: %v", id, err)
	}
	if left := time.Until(leaf.NotAfter); left < CertificateLife/4 {
		return fmt.Sprintf("the certificate of %s is not renewed, and ends in %s", id, left.Round(time.Second))
	}
	return ""
}

// searchKeys looks for the private keys of machines in all that others have: records and reports in
// etcd, all logs, and what replicas and other machines keep on their disks. Each is recorded where
// it was found. It returns how many keys were looked for.
func (c *Cluster) searchKeys() (keys int) {
	c.T.Helper()
	events, err := c.History()
	c.must(err)
	texts, owner := map[string]string{}, map[string]string{}
	for _, id := range c.Cloud.Ever() {
		for what, text := range c.Cloud.Keys(id) {
			name := what + " of " + id
			texts[name], owner[name] = text, id
		}
	}
	search, err := leaks.For(texts)
	c.must(err)
	seen := map[string]bool{}
	look := func(where, on string, text []byte) {
		for _, found := range search.In(text) {
			name, as, _ := strings.Cut(found, ", as ")
			if owner[name] == on || seen[where+name] {
				continue
			}
			seen[where+name] = true
			c.Log.Add(history.Event{Leaked: &history.Leaked{Instance: owner[name], Where: where, As: name + ", as " + as}})
		}
	}
	for _, e := range events {
		if e.Change != nil && !e.Change.Deleted {
			look("etcd's "+e.Change.Key, "", e.Change.Value)
		}
	}
	c.must(filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case d.IsDir() && (c.IsMember(d.Name()) || d.Name() == "etcd"):
			return fs.SkipDir // what etcd holds was seen above
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "history"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		look(strings.TrimPrefix(path, c.Dir+"/"), c.machineOf(path), text)
		return nil
	}))
	return len(texts)
}

// machineOf returns the machine on whose disk a file is; "" if on none's. An agent's log, which is
// elsewhere, is no part of its machine: it is shown to others.
func (c *Cluster) machineOf(path string) string {
	parts := strings.Split(path, string(filepath.Separator))
	at := slices.Index(parts, "machines")
	if at < 0 || at+1 >= len(parts) {
		return ""
	}
	return parts[at+1]
}

// makeAuthority makes the authority that signs the certificates, which all replicas share.
func (c *Cluster) makeAuthority() error {
	return pki.InitWorkloads(c.dir, authorityName, 24*time.Hour)
}

// authorityFlag tells a replica of it.
func (c *Cluster) authorityFlag() []string {
	return []string{"-authority", filepath.Join(c.dir, string(pki.WorkloadsKind(authorityName)))}
}
