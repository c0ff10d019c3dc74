package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/agent/upgrade"
)

// upgradedTo records a version that the agent was upgraded to, whose program is a pipe: an agent
// that starts waits for it. The program takes the pipe's place once finish is called, which has the
// agent read it.
func (b box) upgradedTo(program string) (public string, reads func() (finish func())) {
	b.Helper()
	private, public, err := release.NewKey("test")
	if err != nil {
		b.Fatal(err)
	}
	sum := sha256.Sum256([]byte(program))
	signed, err := release.Sign(release.Statement{
		Version: "v2.0.0", Platform: upgrade.Platform(), Size: int64(len(program)), SHA256: hex.EncodeToString(sum[:]),
	}, private)
	if err != nil {
		b.Fatal(err)
	}
	const file = "leasehold-agent-0123456789abcdef"
	state, err := json.Marshal(map[string]any{
		"schema": 1, "current": map[string]string{"file": file, "statement": signed, "over": "1.2.3"},
	})
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(b.dir, "program")
	pipe, path := filepath.Join(dir, "pipe"), filepath.Join(dir, file)
	write := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	write(os.MkdirAll(dir, 0o700))
	write(os.WriteFile(filepath.Join(dir, "state.json"), state, 0o600))
	write(syscall.Mkfifo(path, 0o700))
	return public, func() func() {
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // returns once the agent has opened it
		write(err)
		write(os.Rename(path, pipe))
		write(os.WriteFile(path, []byte(program), 0o700))
		return func() {
			_, err := w.WriteString(program)
			write(err)
			write(w.Close())
		}
	}
}

// An installed agent that is about to become the version that it was upgraded to receives a signal
// to end. The other program would not know: this one ends in order, with the workload of the run
// before.
//
// proves PROV-7, DET-8
func TestSignalledBeforeItBecomesTheUpgradedVersion(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	first := b.agent()
	g.healthy()
	pid := b.workload()
	first.signal(syscall.SIGKILL)
	first.ended()

	became := filepath.Join(b.dir, "became")
	public, reads := b.upgradedTo("#!/bin/sh\ntouch " + became + "\n")
	p := b.agent("LEASEHOLD_RELEASE_KEY=" + public)
	finish := reads()
	p.signal(syscall.SIGTERM)
	finish()
	if code := p.ended(); code != 0 {
		t.Errorf("agent ended with code %d", code)
	}
	if _, err := os.Stat(became); err == nil {
		t.Error("it became the upgraded version, which knows of no signal")
	}
	if lives(pid) {
		t.Error("workload was not ended")
	}
}

// Without a signal it becomes that version.
//
// proves PROV-7
func TestBecomesTheUpgradedVersion(t *testing.T) {
	g := startGateway(t)
	b := newBox(t, serving, g)
	public, reads := b.upgradedTo("#!/bin/sh\nexit 7\n")
	p := b.agent("LEASEHOLD_RELEASE_KEY=" + public)
	reads()()
	if code := p.ended(); code != 7 {
		t.Errorf("code %d: it did not become the upgraded version", code)
	}
	select {
	case m := <-g.heard:
		t.Errorf("the installed version said hello: %v", m)
	default:
	}
}
