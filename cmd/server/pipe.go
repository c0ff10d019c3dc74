package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/cmd/services"
	"github.com/leasehold/leasehold/coordinator/pki"
)

// message is one message from a part to the supervisor: a line of JSON.
type message struct {
	Ready string `json:"ready,omitempty"` // the address at which it serves
	Alive bool   `json:"alive,omitempty"` // its main loop makes progress
	What  string `json:"what,omitempty"`  // why the part ends
	Next  string `json:"next,omitempty"`  // what the operator can do about it
}

// pipeDescriptor is the file descriptor on which a part writes to the supervisor.
const pipeDescriptor = 3

// pipe is a part's end.
type pipe struct{ file *os.File }

// openPipe returns the part's end of the pipe, which its own children must not inherit.
func openPipe() (*pipe, error) {
	f := os.NewFile(pipeDescriptor, "supervisor")
	if f == nil {
		return nil, errNoSupervisor
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil, errNoSupervisor
	}
	syscall.CloseOnExec(pipeDescriptor)
	return &pipe{f}, nil
}

var errNoSupervisor = &services.Problem{
	What: "--part: only leasehold server itself starts its parts", Next: "leasehold server run --help",
}

func (p *pipe) send(m message) {
	text, err := json.Marshal(m)
	if err == nil {
		_, _ = p.file.Write(append(text, '\n')) // the supervisor is gone, so the part ends too
	}
}

// failed reports why the part ends.
func (p *pipe) failed(err error) {
	m := message{What: program.Joined(err)}
	var known *services.Problem
	var failure *program.Failure
	var files *pki.Problem
	switch {
	case errors.As(err, &known):
		m.What, m.Next = known.What, known.Next
	case errors.As(err, &failure):
		m.What, m.Next = failure.What, failure.Remedies.String()
	case errors.As(err, &files):
		m.What, m.Next = files.What, files.Next
	}
	p.send(m)
}

// maxMessage is the length of the longest message that is understood.
const maxMessage = 1 << 20

// receive calls back for each message until the part has ended. It also reads what follows a
// message that is too long, because a part whose writes block makes no progress.
func receive(from io.Reader, received func(message)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxMessage)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) == nil {
			received(m)
		}
	}
	_, _ = io.Copy(io.Discard, from)
}
