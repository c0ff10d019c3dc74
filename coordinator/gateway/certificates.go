package gateway

import (
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/authority"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/filetemplate"
)

// Authorities certify workloads' keys (FILE-2). They are safe for concurrent use; only Sign takes
// time.
type Authorities interface {
	// Trusted returns the bundle of an authority and what names its issuer.
	Trusted(name string) (bundle []byte, issuer string, err error)
	// Allowed returns why an authority would not sign an order, or nil.
	Allowed(name string, o authority.Order) error
	// Sign certifies the key of a request that asks for exactly what the order says.
	Sign(ctx context.Context, name string, o authority.Order, request []byte) (chain [][]byte, ends time.Time,
		err error)
	// Changed is closed at the next change of Trusted. Call it before Trusted.
	Changed() <-chan struct{}
}

// Why an agent gets no certificate.
const (
	certificateOpen = "the stream to the agent is not secured, so no certificate is sent over it"
	certificateBusy = "another request for it is under way"
)

// followAuthorities notifies the agents that have certificates of a changed authority.
func (g *Gateway) followAuthorities(ctx context.Context) {
	for {
		changed := g.deps.Authorities.Changed()
		for _, s := range g.all() {
			if rec := s.filesRecord(); rec != nil && slices.ContainsFunc(rec.Spec.Files, isCertificate) {
				s.notify(topicFiles)
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func isCertificate(f store.File) bool { return f.Certificate != nil }

// order returns the certificate that an instance should have, or why it can have none.
func (s *session) order(rec *store.Instance, c *store.FileCertificate) (o authority.Order, problem string) {
	if s.g.deps.Authority == nil {
		return o, certificateOpen
	}
	names, err := store.CertificateNames(c.Names, filetemplate.Data{Vars: rec.Spec.Vars, Facts: rec.TemplateFacts()})
	if err != nil {
		return o, err.Error()
	}
	o = authority.Order{Instance: rec.ID, Names: names, KeyType: c.KeyType, Lifetime: c.Lifetime.D()}
	if err := s.g.deps.Authorities.Allowed(c.Authority, o); err != nil {
		return o, err.Error()
	}
	return o, ""
}

// certificate completes the description of a file that is a certificate.
func (s *session) certificate(rec *store.Instance, f *store.File, out *protocol.File) {
	c := f.Certificate
	mode, err := strconv.ParseUint(c.KeyMode, 8, 32)
	o, problem := s.order(rec, c)
	if err != nil {
		problem = "the mode of its key cannot be read: " + c.KeyMode
	}
	out.Certificate = &protocol.CertificateOrder{Names: o.Names, Key: c.Key, KeyMode: uint32(mode), KeyType: c.KeyType}
	if problem == "" {
		_, issuer, err := s.g.deps.Authorities.Trusted(c.Authority)
		if err == nil {
			out.Version = c.Version(rec.ID, o.Names, issuer)
			return
		}
		problem = err.Error()
	}
	out.Problem = problem
	s.g.deps.Logger.Debug("certificate is not given", "instance", s.instance, "path", f.Path, "why", problem)
}

// bundleFile returns the file with the authorities that a certificate's file names; nil if it names
// none. It is sent before the certificate, so that the agent trusts them first.
func bundleFile(f *store.File) *store.File {
	if f.Certificate == nil || f.Certificate.Bundle == "" {
		return nil
	}
	return &store.File{
		Path: f.Certificate.Bundle, Owner: f.Owner, Mode: "0644", OnChange: f.OnChange,
		Certificate: &store.FileCertificate{Authority: f.Certificate.Authority},
	}
}

// bundle returns the content of such a file.
func (s *session) bundle(f *store.File) (data []byte, problem string) {
	data, _, err := s.g.deps.Authorities.Trusted(f.Certificate.Authority)
	if err != nil {
		return nil, err.Error()
	}
	return data, ""
}

// sign answers a request for a certificate, on its own goroutine: an authority may take long. It
// signs a repeated request again, which is harmless, and refuses a request for another version than
// the current one. s.mu must be held.
func (s *session) sign(ask *protocol.SignRequest) error {
	answer := &protocol.Signed{Path: ask.GetPath(), Version: ask.GetVersion()}
	o, name, problem := s.ordered(ask)
	if problem == "" {
		s.wanted.mu.Lock()
		signing := s.wanted.files.signing
		if signing[ask.GetPath()] {
			problem = certificateBusy
		} else {
			if signing == nil {
				signing = map[string]bool{}
				s.wanted.files.signing = signing
			}
			signing[ask.GetPath()] = true
		}
		s.wanted.mu.Unlock()
	}
	if problem != "" {
		answer.Problem = problem
		return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Signed{Signed: answer}})
	}
	s.g.spawn(func() {
		ctx, cancel := context.WithCancel(s.g.life)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		chain, ends, err := s.g.deps.Authorities.Sign(ctx, name, o, ask.GetRequest())
		s.wanted.mu.Lock()
		delete(s.wanted.files.signing, ask.GetPath())
		s.wanted.mu.Unlock()
		if err != nil {
			answer.Problem = err.Error()
			s.g.deps.Logger.Debug("certificate was not signed", "instance", s.instance, "path", ask.GetPath(),
				"authority", name, "why", err)
		} else {
			answer.Chain, answer.Issued, answer.Ends = chain, timestamppb.Now(), timestamppb.New(ends)
			s.g.deps.Logger.Debug("certificate signed", "instance", s.instance, "path", ask.GetPath(), "authority",
				name, "ends", ends)
		}
		s.enqueue(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Signed{Signed: answer}})
	})
	return nil
}

// takeRequest counts a request. It returns how long to wait before anything else is read, and a
// violation if requests keep coming too soon.
func (f *fileWants) takeRequest() (time.Duration, error) {
	if f.hasty == nil {
		f.hasty = new(guard.RenewalState)
		f.hasty.Init()
	}
	return f.hasty.Take()
}

// ordered returns the order to sign. It depends only on the record, never on the request.
func (s *session) ordered(ask *protocol.SignRequest) (o authority.Order, name, problem string) {
	rec := s.filesRecord()
	if rec == nil {
		return o, "", fileOther
	}
	at := slices.IndexFunc(rec.Spec.Files, func(f store.File) bool { return f.Path == ask.GetPath() })
	if at < 0 || rec.Spec.Files[at].Certificate == nil {
		return o, "", fileOther
	}
	c := rec.Spec.Files[at].Certificate
	if o, problem = s.order(rec, c); problem != "" {
		return o, "", problem
	}
	_, issuer, err := s.g.deps.Authorities.Trusted(c.Authority)
	switch {
	case err != nil:
		return o, "", err.Error()
	case c.Version(rec.ID, o.Names, issuer) != ask.GetVersion():
		s.notify(topicFiles)
		return o, "", fileOther
	}
	return o, c.Authority, ""
}
