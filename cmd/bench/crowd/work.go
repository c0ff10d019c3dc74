package crowd

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// askAgain is how long an answer is waited for before it is asked again.
const askAgain = time.Minute

// workCertificate is the certificate of a workload as it is wanted, and as it came last. Nothing of
// it is on a disk.
type workCertificate struct {
	file    *protocol.File
	others  []*protocol.File // the bundle
	version string           // of what came
	at      time.Time        // when that was
	ends    time.Time
	due     time.Time // when another one is asked for
}

// wantWork takes up which files are wanted. The content of others is taken to be there.
func (a *agent) wantWork(now time.Time, files *protocol.Files) {
	var w workCertificate
	for _, f := range files.GetFiles() {
		if f.GetCertificate() == nil {
			w.others = append(w.others, f)
			continue
		}
		w.file = f
		if f.GetProblem() != "" {
			a.loop.counts.trouble(f.GetProblem())
		}
	}
	if w.file == nil || w.file.GetVersion() == "" || a.loop.crowd.certificates == nil {
		return
	}
	w.due = now
	if a.work != nil && a.work.version == w.file.GetVersion() { // sent again on another stream
		w.version, w.at, w.ends, w.due = a.work.version, a.work.at, a.work.ends, a.work.due
	}
	a.work, a.tail = &w, nil
}

// renewWork asks for a certificate when that is due, and returns when to look again; zero: never.
func (a *agent) renewWork(now time.Time) time.Time {
	if a.work == nil {
		return time.Time{}
	}
	if now.Before(a.work.due) {
		return a.work.due
	}
	a.work.due = now.Add(askAgain)
	name, serving := a.session.Serving()
	if s := a.stream(name); serving && s != nil && s.stream != nil {
		if message, err := a.signRequest(); err != nil || !s.stream.Send(message) {
			a.loop.counts.trouble("a request for a certificate was not sent")
		}
	}
	return a.work.due
}

func (a *agent) signRequest() ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: a.id}, DNSNames: a.work.file.GetCertificate().GetNames(),
	}, a.loop.crowd.certificates.key)
	if err != nil {
		return nil, err
	}
	sign := &protocol.SignRequest{
		Path: a.work.file.GetPath(), Version: a.work.file.GetVersion(), Request: der,
	}
	return proto.Marshal(&protocol.AgentMessage{Kind: &protocol.AgentMessage_SignRequest{SignRequest: sign}})
}

// takeWork takes a certificate that came, and reports whether the next report has changed. The
// first one of an agent is renewed at any moment of its life, like the certificates of machines
// that were made over a long time.
func (a *agent) takeWork(now time.Time, s *protocol.Signed) (news bool) {
	w := a.work
	switch {
	case w == nil || s.GetVersion() != w.file.GetVersion():
		return false
	case s.GetProblem() != "":
		a.loop.counts.trouble(s.GetProblem())
		return false
	}
	after := s.GetEnds().AsTime().Sub(s.GetIssued().AsTime()) * 2 / 3
	if w.version == "" {
		after = time.Duration(chance() * float64(after))
	}
	w.version, w.at, w.ends, w.due = s.GetVersion(), now, s.GetEnds().AsTime(), now.Add(after)
	a.loop.counts.certificates++
	a.tail = nil
	return true
}

// states returns what is reported of the files.
func (w *workCertificate) states() (out []*protocol.FileState) {
	if w == nil {
		return nil
	}
	for _, f := range w.others {
		out = append(out, &protocol.FileState{Path: f.GetPath(), State: "delivered", Version: f.GetVersion()})
	}
	f := &protocol.FileState{Path: w.file.GetPath(), State: "missing", Why: "its authority was asked for it"}
	if w.version != "" {
		f = &protocol.FileState{
			Path: w.file.GetPath(), State: "delivered", Version: w.version, At: timestamppb.New(w.at),
			Ends: timestamppb.New(w.ends),
		}
	}
	return append(out, f)
}
