package files

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/agent/workload"
)

// Types of PEM blocks.
const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// pair is the locations of a certificate and its key. If they are the same, one file holds both.
type pair struct {
	path              string
	certificate, key  place
	wanted, wantedKey attributes
}

// pairText is the content of the files.
type pairText struct{ certificate, key []byte }

// onDisk describes a pair on disk.
type onDisk struct {
	broken string // what is wrong with the contents; "": they are as issued
	fits   bool   // mode and owner are as wanted
	stamps [2]found
	text   pairText
}

// leaf is the certificate on disk, whose key is beside it.
type leaf struct{ chain string }

// pairOf returns the wanted locations of a certificate and its key.
func (m *Manager) pairOf(f *protocol.File, vars map[string]string) (p pair, err error) {
	if p.path, err = workload.ExpandText("path", f.GetPath(), vars, m.cfg.Facts); err != nil {
		return p, err
	}
	keyPath, err := workload.ExpandText("key", f.GetCertificate().GetKey(), vars, m.cfg.Facts)
	if err != nil {
		return p, err
	}
	if p.certificate, err = find(p.path, m.cfg.Roots); err != nil {
		return p, err
	}
	if p.key, err = find(keyPath, m.cfg.Roots); err != nil {
		return p, fmt.Errorf("its key: %w", err)
	}
	uid, gid, err := ownerOf(f.GetOwner())
	if err != nil {
		return p, err
	}
	p.wanted = attributes{fs.FileMode(f.GetMode()).Perm(), uid, gid}
	p.wantedKey = attributes{fs.FileMode(f.GetCertificate().GetKeyMode()).Perm(), uid, gid}
	if p.both() {
		p.wantedKey = p.wanted
	}
	return p, nil
}

// both reports whether one file holds both.
func (p pair) both() bool { return p.certificate == p.key }

// write replaces both files. It calls note when both new files are complete, before they are
// exchanged. After a crash between the two renames, finish completes the exchange.
func (p pair) write(text pairText, note func() error, at func(step string) error) error {
	if p.both() {
		err := stage(p.certificate, append(bytes.Clone(text.certificate), text.key...), p.wanted, at)
		if err == nil {
			err = note()
		}
		if err != nil {
			unstage(p.certificate)
			return err
		}
		if err = exchange(p.certificate, at); err != nil {
			unstage(p.certificate)
		}
		return err
	}
	err := stage(p.certificate, text.certificate, p.wanted, at)
	if err == nil {
		err = stage(p.key, text.key, p.wantedKey, at)
	}
	if err == nil {
		err = note()
	}
	if err != nil {
		unstage(p.certificate)
		unstage(p.key)
		return err
	}
	if err := exchange(p.key, at); err != nil {
		unstage(p.key)
		return err // the new certificate stays aside: its key may be in place already
	}
	return exchange(p.certificate, at)
}

// finish completes an exchange that a crash interrupted after the key was renamed: the new
// certificate is complete beside the old one.
func (p pair) finish(at func(step string) error) bool {
	if p.both() {
		return false
	}
	aside := p
	aside.certificate.name = staged(p.certificate.name)
	_, found, err := aside.read()
	return err == nil && found != nil && exchange(p.certificate, at) == nil
}

// read reads both files. The leaf is nil if the key does not match the certificate.
func (p pair) read() (text pairText, l *leaf, err error) {
	certificate, err := read(p.certificate)
	key := certificate
	if err == nil && !p.both() {
		key, err = read(p.key)
	}
	if err != nil {
		return text, nil, err
	}
	var chain [][]byte
	for _, block := range blocksOf(certificate, certificateBlock) {
		chain = append(chain, block.Bytes)
		text.certificate = append(text.certificate, pem.EncodeToMemory(block)...)
	}
	keys := blocksOf(key, keyBlock)
	if len(keys) != 1 {
		return text, nil, errors.New("there is not exactly one key")
	}
	text.key = pem.EncodeToMemory(keys[0])
	parsed, err := x509.ParsePKCS8PrivateKey(keys[0].Bytes)
	if err != nil {
		return text, nil, err
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return text, nil, errors.New("the key cannot sign")
	}
	if _, err := leafFor(chain, signer); err != nil {
		return text, nil, err
	}
	return text, &leaf{printOf(chain)}, nil
}

func blocksOf(text []byte, kind string) (out []*pem.Block) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			return out
		}
		if block.Type == kind {
			out = append(out, block)
		}
		text = rest
	}
}

// textOf returns the content for the files.
func textOf(chain [][]byte, key crypto.Signer) (text pairText, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return text, fmt.Errorf("write key: %w", err)
	}
	text.key = pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})
	for _, c := range chain {
		text.certificate = append(text.certificate, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c})...)
	}
	return text, nil
}
