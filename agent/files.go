package agent

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leasehold/leasehold/agent/protocol"
)

// hearOfFiles takes what the serving replica says of files. Files come before the Wanted that they
// belong to.
func (a *Agent) hearOfFiles(m *protocol.GatewayMessage) {
	if piece := m.GetFilePiece(); piece != nil {
		a.deps.Files.Piece(piece)
		return
	}
	if signed := m.GetSigned(); signed != nil {
		a.deps.Files.Signed(signed)
		return
	}
	if serving, is := a.session.Serving(); is && serving != a.filesFrom {
		a.filesFrom = serving
		a.deps.Files.Reconnected()
	}
	a.files = m.GetFiles()
	if a.duty.Files && a.files.GetConfigHash() == a.duty.ConfigHash {
		a.wantFiles(a.duty)
	}
}

// wantFiles keeps the files of a duty. It leaves files alone until a replica has described them.
func (a *Agent) wantFiles(d duty) {
	switch {
	case !d.Files:
		a.deps.Files.Want(&protocol.Files{ConfigHash: d.ConfigHash}, d.Vars)
	case a.files.GetConfigHash() == d.ConfigHash:
		a.deps.Files.Want(a.files, d.Vars)
	}
}

// ask asks the serving replica for a piece of a file, or a certificate. What is lost is asked for
// again.
func (a *Agent) ask(what *protocol.AgentMessage) {
	serving, is := a.session.Serving()
	if s := a.streams[serving]; is && s != nil {
		s.say(what)
	}
}

// settled reports whether the files of the configuration have all been delivered. Until then it is
// not confirmed.
func (a *Agent) settled() bool {
	return !a.duty.Files || a.deps.Files.Settled(a.duty.ConfigHash)
}

// restartNow is the token of the restart that is wanted; "" while files that came with it are on
// their way: the workload is to find them when it starts.
func (a *Agent) restartNow() string {
	if !a.settled() {
		return ""
	}
	return a.restart
}

// incomplete returns which files an instance has never had. What happens to them later is told and
// makes it no less healthy: its checks know whether it works.
func (a *Agent) incomplete() string {
	if a.whole || !a.duty.Files {
		return ""
	}
	if why := a.deps.Files.MissingNow(); why != "" {
		return "files: " + why
	}
	a.whole = true
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

// filesChanged starts what waited for files: the workload, and commands of checks, whose output is
// not looked at before it is known what in it is secret.
func (a *Agent) filesChanged() {
	list, _ := a.checked()
	healthy, _ := health(a.told(), list)
	if number := a.deps.Secrets.Number(); number != a.secretNumber {
		a.secretNumber = number
		a.wantChecks(healthy, a.kept)
	}
	a.wish(time.Time{})
}
