package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/leasehold/leasehold/agent/protocol"
	"github.com/leasehold/leasehold/coordinator/guard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/filetemplate"
)

// Why an agent gets no content of a file.
const (
	fileOldAgent = "the agent is of a release that writes no files: upgrade it"
	fileNoPeers  = "the group's peers are not known: records of the shard are lost, " +
		"and none is left out for that (SAFE-18)"
	fileOther = "it has another version by now"
)

// fileWants are the files that a record wants of its agent. They are rendered here and not on the
// machine: the replica has the peers and the facts in its cache, and an agent learns nothing of its
// group except what a template contains.
type fileWants struct {
	record *store.Instance // nil: no files
	sent   *protocol.Files
	sends  sending

	signing map[string]bool // paths of certificates under request from an authority; session.wanted.mu guards it
	hasty   *guard.RenewalState
}

// sending is a content whose pieces have not all been fetched.
type sending struct {
	path, version string
	data          []byte
}

// wantFiles sets the files of a record. s.wanted.mu must be held.
func (s *session) wantFiles(i store.Instance) {
	f := &s.wanted.files
	had := f.record != nil
	f.record = nil
	if len(i.Spec.Files) > 0 && i.Config != "" {
		f.record = &i
	}
	if (f.record != nil || had) && s.spoken >= protocol.ManagedFiles {
		s.notify(topicFiles)
	}
}

// filesRecord returns the record whose files are wanted; nil if there are none.
func (s *session) filesRecord() *store.Instance {
	s.wanted.mu.Lock()
	defer s.wanted.mu.Unlock()
	return s.wanted.files.record
}

// sendFiles sends the wanted files to the agent, unless it was sent the same before. s.mu must be
// held.
func (s *session) sendFiles() error {
	rec := s.filesRecord()
	f := &s.wanted.files
	if s.spoken < protocol.ManagedFiles || rec == nil && f.sent == nil {
		return nil
	}
	now := &protocol.Files{}
	if rec != nil {
		now.ConfigHash = rec.Config
		for i := range rec.Spec.Files {
			f := &rec.Spec.Files[i]
			if bundle := bundleFile(f); bundle != nil {
				now.Files = append(now.Files, s.file(rec, bundle))
			}
			now.Files = append(now.Files, s.file(rec, f))
		}
	}
	if proto.Equal(now, f.sent) {
		return nil
	}
	f.sent = now
	return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_Files{Files: now}})
}

// file describes a file, without its content.
func (s *session) file(rec *store.Instance, f *store.File) *protocol.File {
	mode, err := strconv.ParseUint(f.Mode, 8, 32)
	out := &protocol.File{
		Path: f.Path, Owner: f.Owner, Mode: uint32(fs.FileMode(mode).Perm()), OnChange: f.OnChange.Do, Run: f.OnChange.Run,
		Secret: f.Secret != "",
	}
	if err != nil {
		out.Problem = fmt.Sprintf("its mode %q cannot be read", f.Mode)
		return out
	}
	if isCertificate(*f) && f.Certificate.Key != "" {
		s.certificate(rec, f, out)
		return out
	}
	data, version, problem := s.content(rec, f)
	if problem != "" {
		out.Problem = problem
		s.g.undelivered.add("file", rec.Group, s.instance, f.Path, problem)
		return out
	}
	sum := sha256.Sum256(data)
	out.Version, out.Size, out.Sha256 = version, uint32(len(data)), sum[:]
	return out
}

// content returns the content of a file, with a version that is the same on every replica, or why
// there is none.
func (s *session) content(rec *store.Instance, f *store.File) (data []byte, version, problem string) {
	switch {
	case f.Secret != "":
		value, revision, problem := s.value(f.Secret)
		return value, fmt.Sprintf("s%d", revision), problem
	case f.Text != nil:
		data = []byte(*f.Text)
	case f.Certificate != nil:
		if data, problem = s.bundle(f); problem != "" {
			return nil, "", problem
		}
	default:
		if data, problem = s.render(rec, f); problem != "" {
			return nil, "", problem
		}
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:8]), ""
}

// render renders a template for an instance.
func (s *session) render(rec *store.Instance, f *store.File) (data []byte, problem string) {
	t, err := filetemplate.Parse(f.Template)
	if err != nil {
		return nil, "its template cannot be read: " + err.Error()
	}
	render := func(peers []filetemplate.Peer) ([]byte, error) {
		return t.Render(filetemplate.Data{Vars: rec.Spec.Vars, Facts: rec.TemplateFacts(), Peers: peers})
	}
	if !t.UsesPeers() {
		data, err = render(nil)
	} else {
		shared := ""
		if !t.UsesFacts() { // all instances have the same file
			sum := sha256.Sum256(store.Encode([]any{f.Template, rec.Spec.Vars}))
			shared = string(sum[:])
		}
		var known bool
		if data, known, err = s.g.peers.render(rec.Group, f.Settle.D(), shared, render); !known {
			return nil, fileNoPeers
		}
	}
	if err != nil {
		return nil, "its template cannot be rendered: " + err.Error()
	}
	return data, ""
}

// fetchFile answers with a piece of a file. s.mu must be held.
func (s *session) fetchFile(ask *protocol.FetchFile) error {
	answer := &protocol.FilePiece{Path: ask.GetPath(), Version: ask.GetVersion(), Offset: ask.GetOffset()}
	sends := &s.wanted.files.sends
	if sends.path != ask.GetPath() || sends.version != ask.GetVersion() {
		*sends, answer.Problem = s.begin(ask)
	}
	at := int(ask.GetOffset())
	if answer.Problem == "" && at < len(sends.data) {
		answer.Data = sends.data[at:min(at+protocol.MaxPiece, len(sends.data))]
	}
	if at+len(answer.GetData()) >= len(sends.data) {
		*sends = sending{} // the agent has it or asks again
	}
	return s.stream.Send(&protocol.GatewayMessage{Kind: &protocol.GatewayMessage_FilePiece{FilePiece: answer}})
}

// begin returns the content that an agent asks for.
func (s *session) begin(ask *protocol.FetchFile) (content sending, problem string) {
	rec := s.filesRecord()
	if rec == nil {
		return sending{}, fileOther
	}
	f := wantedFile(rec, ask.GetPath())
	if f == nil {
		return sending{}, fileOther
	}
	data, version, problem := s.content(rec, f)
	if problem == "" && version != ask.GetVersion() {
		problem = fileOther
	}
	if problem != "" {
		s.notify(topicFiles)
		return sending{}, problem
	}
	return sending{ask.GetPath(), version, data}, ""
}

// wantedFile returns the file with content at a path, bundles included; nil if there is none.
func wantedFile(rec *store.Instance, path string) *store.File {
	for i := range rec.Spec.Files {
		f := &rec.Spec.Files[i]
		if bundle := bundleFile(f); bundle != nil && bundle.Path == path {
			return bundle
		}
		if f.Path == path && f.Certificate == nil {
			return f
		}
	}
	return nil
}

// fileReports converts the files of a report for storage. An agent that does not support files
// reports none, and has not applied a configuration with files.
func (s *session) fileReports(r *protocol.Report, rec *store.Report) {
	if wants := s.filesRecord(); wants != nil && s.spoken < protocol.ManagedFiles {
		rec.Config = ""
		for i := range wants.Spec.Files {
			rec.Files = append(rec.Files,
				store.FileReport{Path: wants.Spec.Files[i].Path, State: store.FileMissing, Why: fileOldAgent})
		}
		return
	}
	for i, f := range r.GetFiles() {
		if i == protocol.MaxFiles {
			break
		}
		rec.Files = append(rec.Files, fileReport(f))
	}
}
