package files

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"time"

	"github.com/leasehold/leasehold/agent/protocol"
)

// Times of certificates.
const (
	signWait    = 45 * time.Second // limit for an answer; an authority elsewhere needs most of it
	reissueOver = 10 * time.Second // after a change of their authority, agents spread their requests over this time
	minRenewal  = 10 * time.Second
	answerKept  = 10 * time.Minute // an answer is kept this long if it cannot be written, for example to a full disk
)

// issued is what is known of the certificate on the machine. Times are by the coordinators' clock.
type issued struct {
	Chain string    `json:"chain"` // fingerprint of the chain
	From  time.Time `json:"from"`
	Ends  time.Time `json:"ends"`
}

// life returns the certificate's lifetime.
func (i issued) life() time.Duration { return max(0, i.Ends.Sub(i.From)) }

// renewAfter returns the age at which a certificate is renewed: two thirds of its lifetime and up
// to a thirtieth more, so that machines that were created together do not ask together.
func (i issued) renewAfter(jitter float64) time.Duration {
	life := i.life()
	return max(minRenewal, life*2/3+time.Duration(jitter*float64(life/30)))
}

// held is when this run of the agent first saw a certificate, by the monotonic clock: a
// coordinator's clock that is set back delays no renewal.
type held struct {
	chain string
	since time.Time
}

// order is a request for a certificate. Its key is only in memory until the certificate is written.
type order struct {
	version string
	key     crypto.Signer
	until   time.Time        // deadline for an answer
	answer  *protocol.Signed // the answer's chain; nil: no answer yet
	came    time.Time        // the answer
}

// waits is not a failure: the file stays as it is until the answer arrives.
type waits struct{ until time.Time }

func (w waits) Error() string { return "it is waited for" }

// Signed takes a coordinator's answer. It ignores an answer to another request, which may be late.
func (m *Manager) Signed(s *protocol.Signed) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[s.GetPath()]
	if o == nil || o.version != s.GetVersion() || o.answer != nil {
		return
	}
	if s.GetProblem() == "" {
		if _, err := leafFor(s.GetChain(), o.key); err != nil {
			return
		}
	}
	o.answer, o.came = s, time.Now()
	signal(m.answered)
}

// leafFor returns the first certificate of a chain if it is for the key.
func leafFor(chain [][]byte, key crypto.Signer) (*x509.Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("there is no certificate")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", err)
	}
	if public, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("it is for another key")
	}
	return leaf, nil
}

// keepCertificate brings a certificate and its key to the wanted state.
func (m *Manager) keepCertificate(ctx context.Context, f *protocol.File, vars map[string]string) error {
	p, err := m.pairOf(f, vars)
	if err != nil {
		return err
	}
	if at := p.key.root + "/" + p.key.name; !m.hidden[at] {
		if text, err := read(p.key); err == nil { // left by an earlier run of the agent
			m.hideKey(f, text)
		}
		m.hidden[at] = true
	}
	last := m.memory.Files[f.GetPath()]
	now := m.examine(f, p, last)
	if f.GetProblem() != "" {
		return m.stillThere(now, last, errors.New(f.GetProblem()))
	}
	switch {
	case now.broken != "" || !last.Delivered:
	case last.Version != f.GetVersion():
		if until, spread := m.reissueAt(f); spread {
			return waits{until}
		}
	case m.due(f.GetPath(), last.Issued):
	case !now.fits:
		return m.put(f, p, now.text, last.Issued, "")
	default:
		m.learnPair(f, now)
		return nil
	}
	return m.stillThere(now, last, m.issue(ctx, f, p, now, last))
}

// stillThere adds to an error that the old certificate is still in place. The report says when it
// expires.
func (m *Manager) stillThere(now onDisk, last memory, err error) error {
	var wait waits
	if err == nil || errors.As(err, &wait) || now.broken != "" || !last.Delivered {
		return err
	}
	if !m.deps.Now().Before(last.Issued.Ends) {
		return fmt.Errorf("it has expired, and was not renewed: %w", err)
	}
	return fmt.Errorf("it is not renewed: %w", err)
}

// reissueAt returns when to ask for another certificate because the wanted version has changed. If
// the group has not changed, its authority has, and all machines would ask at once.
func (m *Manager) reissueAt(f *protocol.File) (until time.Time, spread bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready[f.GetPath()] {
		return time.Time{}, false
	}
	o := m.orders[f.GetPath()]
	if o == nil || o.version != f.GetVersion() {
		o = &order{version: f.GetVersion(), until: time.Now().Add(time.Duration(m.jitter * float64(reissueOver)))}
		m.orders[f.GetPath()] = o
	}
	return o.until, o.key == nil && time.Now().Before(o.until)
}

// due reports whether it is time to renew a certificate.
func (m *Manager) due(path string, i issued) bool {
	after := i.renewAfter(m.jitter)
	h := m.held[path]
	return !m.deps.Now().Before(i.From.Add(after)) || h.chain == i.Chain && time.Since(h.since) >= after
}

// issue asks for a certificate for a new key, and writes both once there is an answer.
func (m *Manager) issue(ctx context.Context, f *protocol.File, p pair, now onDisk, last memory) error {
	m.mu.Lock()
	o := m.orders[f.GetPath()]
	if o != nil && (o.version != f.GetVersion() || o.key == nil || o.answer != nil && time.Since(o.came) > answerKept) {
		o = nil
	}
	if o != nil && o.answer == nil && time.Now().Before(o.until) {
		m.mu.Unlock()
		return waits{o.until}
	}
	m.mu.Unlock()
	if o == nil {
		return m.request(ctx, f, now)
	}
	text, i, err := o.taken(f, time.Now(), m.deps.Now())
	if err != nil {
		m.forgetOrder(f)
		return err
	}
	m.hideKey(f, text.key)
	mended := ""
	if last.Delivered && last.Version == f.GetVersion() && now.broken != "" {
		mended = now.broken + ", and was issued again"
	}
	if err := m.put(f, p, text, i, mended); err != nil {
		return err // the next attempt writes the answer
	}
	m.forgetOrder(f)
	return nil
}

func (m *Manager) forgetOrder(f *protocol.File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.orders, f.GetPath())
}

// taken returns what to write for an answer. It refuses a certificate that is not valid at any time
// that may be the present one: the clock of the coordinator that signed it has jumped, and others
// would refuse the certificate.
func (o *order) taken(f *protocol.File, now ...time.Time) (text pairText, i issued, err error) {
	switch {
	case o.answer == nil:
		return text, i, fmt.Errorf("its authority did not answer within %s", signWait)
	case o.answer.GetProblem() != "":
		return text, i, errors.New(o.answer.GetProblem())
	}
	leaf, err := leafFor(o.answer.GetChain(), o.key)
	if err == nil && !namesAre(leaf, f.GetCertificate().GetNames()) {
		err = errors.New("its names differ from the names in the request")
	}
	valid := func(at time.Time) bool { return !at.Before(leaf.NotBefore) && !at.After(leaf.NotAfter) }
	if err == nil && !slices.ContainsFunc(now, valid) {
		err = fmt.Errorf("it is valid from %s to %s, and not now: a clock is wrong",
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return text, i, fmt.Errorf("the issued certificate: %w", err)
	}
	i = issued{
		Chain: printOf(o.answer.GetChain()), From: o.answer.GetIssued().AsTime().Round(0),
		Ends: o.answer.GetEnds().AsTime().Round(0),
	}
	text, err = textOf(o.answer.GetChain(), o.key)
	return text, i, err
}

// request makes a key and asks for its certificate.
func (m *Manager) request(ctx context.Context, f *protocol.File, now onDisk) error {
	key, err := newKey(f.GetCertificate().GetKeyType())
	if err != nil {
		return err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: m.cfg.Instance}}
	for _, name := range f.GetCertificate().GetNames() {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return fmt.Errorf("request certificate: %w", err)
	}
	o := &order{version: f.GetVersion(), key: key, until: time.Now().Add(signWait)}
	m.mu.Lock()
	m.orders[f.GetPath()] = o
	if _, failed := m.tries[f.GetPath()]; now.broken != "" && !failed {
		m.set(f, State{Path: f.GetPath(), State: Missing, Why: "its authority was asked for it"})
	}
	m.mu.Unlock()
	err = m.ask(ctx, &protocol.AgentMessage{Kind: &protocol.AgentMessage_SignRequest{SignRequest: &protocol.SignRequest{
		Path: f.GetPath(), Version: f.GetVersion(), Request: request,
	}}})
	if err != nil {
		m.forgetOrder(f)
		return err
	}
	return waits{o.until}
}

// put replaces both files. Both are complete on disk before either is exchanged.
func (m *Manager) put(f *protocol.File, p pair, text pairText, i issued, mended string) error {
	note := func() error {
		err := m.note(f, func(r *memory) {
			r.Delivered, r.Version, r.Issued = true, f.GetVersion(), i
			r.Follow = f.GetOnChange() == "reload" || f.GetOnChange() == "run"
		})
		if err != nil {
			return errors.New(plain(errors.Unwrap(err), m.path))
		}
		return nil
	}
	if err := p.write(text, note, m.deps.At); err != nil {
		return errors.New(plain(err, p.path))
	}
	now := m.examine(f, p, m.memory.Files[f.GetPath()])
	if now.broken != "" || !now.fits {
		return errors.New("it was changed on the machine while it was written")
	}
	m.learnPair(f, now)
	if mended != "" {
		m.deps.Logger.Warn("certificate mended", "path", f.GetPath(), "why", mended)
	} else {
		m.deps.Logger.Info("certificate written", "path", f.GetPath(), "version", f.GetVersion(), "ends", i.Ends)
	}
	m.writes[f.GetPath()] = write{time.Now(), mended}
	return nil
}

// hideKey registers the key, so that it is removed from texts that leave the machine.
func (m *Manager) hideKey(f *protocol.File, text []byte) {
	for _, block := range blocksOf(text, keyBlock) {
		m.deps.Hide(f.GetCertificate().GetKey(), pem.EncodeToMemory(block))
	}
}

// examine reads what is on disk. It does not read files again whose stamps have not changed.
func (m *Manager) examine(f *protocol.File, p pair, last memory) onDisk {
	keyName := f.GetPath() + keyMark
	certificate, err := look(p.certificate, m.known[f.GetPath()])
	key, keyErr := look(p.key, m.known[keyName])
	if err = errors.Join(err, keyErr); err != nil {
		if p.finish(m.deps.At) {
			return m.examine(f, p, last)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return onDisk{broken: "it had been removed on the machine"}
		}
		return onDisk{broken: "it could not be read: " + plain(err, p.path)}
	}
	now := onDisk{
		stamps: [2]found{certificate, key}, fits: certificate.attrs.fits(p.wanted) && key.attrs.fits(p.wantedKey),
	}
	known, is := m.known[f.GetPath()]
	if is && known == certificate && m.known[keyName] == key && last.Issued.Chain == m.held[f.GetPath()].chain &&
		now.fits {
		return now
	}
	text, leaf, err := p.read()
	switch {
	case err != nil || leaf == nil:
		if p.finish(m.deps.At) {
			return m.examine(f, p, last)
		}
		now.broken = "it had been changed on the machine"
	case last.Issued.Chain != leaf.chain:
		now.broken = "it had been changed on the machine"
	}
	now.text = text
	return now
}

// keyMark is the suffix of the name under which a key's stamp is remembered.
const keyMark = "\x00key"

// learnPair remembers the stamps of both files once they are as wanted: see learn.
func (m *Manager) learnPair(f *protocol.File, now onDisk) {
	names := [2]string{f.GetPath(), f.GetPath() + keyMark}
	for i, name := range names {
		if time.Since(time.Unix(now.stamps[i].stamp.ctime.Unix())) > time.Second {
			m.known[name] = now.stamps[i]
		} else {
			delete(m.known, name)
		}
	}
	if chain := m.memory.Files[f.GetPath()].Issued.Chain; m.held[f.GetPath()].chain != chain {
		m.held[f.GetPath()] = held{chain, time.Now()}
	}
}

// newKey makes a key, which never leaves the machine.
func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	default:
		return nil, fmt.Errorf("key type %q: this release of the agent does not support it", kind)
	}
}

// namesAre reports whether a certificate has exactly these names.
func namesAre(c *x509.Certificate, names []string) bool {
	has := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		has = append(has, ip.String())
	}
	slices.Sort(has)
	return slices.Equal(has, names)
}

// printOf returns the fingerprint of a chain.
func printOf(chain [][]byte) string {
	sum := sha256.Sum256(bytes.Join(chain, nil))
	return hex.EncodeToString(sum[:16])
}
