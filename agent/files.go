package agent

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// hearOfFiles takes the serving replica's description of files, which precedes the Wanted that
// needs it.
func (a *Agent) hearOfFiles(m *protocol.GatewayMessage) {
	if piece := m.GetFilePiece(); piece != nil {
		a.deps.Files.Piece(piece)
		return
	}
	if signed := m.GetSigned(); signed != nil {
		a.deps.Files.Signed(signed)
		return
	}
	if serving, ok := a.session.Serving(); ok && serving != a.filesFrom {
		a.filesFrom = serving
		a.deps.Files.Reconnected()
	}
	a.files = m.GetFiles()
	if a.assignment.Files && a.files.GetConfigHash() == a.assignment.ConfigHash {
		a.wantFiles(a.assignment)
	}
}

// wantFiles sets the files of an assignment. It changes nothing until a replica has described them.
func (a *Agent) wantFiles(d assignment) {
	switch {
	case !d.Files:
		a.deps.Files.Want(&protocol.Files{ConfigHash: d.ConfigHash}, d.Vars)
	case a.files.GetConfigHash() == d.ConfigHash:
		a.deps.Files.Want(a.files, d.Vars)
	}
}

// ask asks the serving replica for a piece of a file, or a certificate. A lost request is repeated.
func (a *Agent) ask(what *protocol.AgentMessage) {
	serving, ok := a.session.Serving()
	if s := a.streams[serving]; ok && s != nil {
		s.say(what)
	}
}

// settled reports whether all files of the configuration have been delivered. Until then the
// configuration is not confirmed.
func (a *Agent) settled() bool {
	return !a.assignment.Files || a.deps.Files.Settled(a.assignment.ConfigHash)
}

// restartNow returns the token of the wanted restart, or "" while files that came with it are being
// delivered: the workload must find them when it starts.
func (a *Agent) restartNow() string {
	if !a.settled() {
		return ""
	}
	return a.restart
}

// incomplete returns the files that an instance has never had. Later changes of these files are
// reported but do not affect health: the checks decide whether the workload works.
func (a *Agent) incomplete() string {
	if a.whole || !a.assignment.Files {
		return ""
	}
	why, known := a.deps.Files.MissingSoon()
	if why != "" {
		return "files: " + why
	}
	a.whole = known // if the disk does not answer, the next report looks again
	return ""
}

func (a *Agent) fileStates() []*protocol.FileState {
	var out []*protocol.FileState
	for _, s := range a.deps.Files.States() {
		f := &protocol.FileState{Path: s.Path, State: s.State, Why: a.deps.Secrets.Veil(s.Why), Version: s.Version}
		if !s.At.IsZero() {
			f.At = timestamppb.New(s.At)
		}
		if !s.Ends.IsZero() {
			f.Ends = timestamppb.New(s.Ends)
		}
		out = append(out, f)
	}
	return out
}

// filesChanged starts what waited for files: the workload, and the commands of checks, whose output
// may be read only once the secrets in it are known.
func (a *Agent) filesChanged() {
	list, _ := a.checked()
	healthy, _ := health(a.checksKnown(), list)
	if number := a.deps.Secrets.Number(); number != a.secretNumber {
		a.secretNumber = number
		a.wantChecks(healthy, a.kept)
	}
	a.setTarget(time.Time{})
}
