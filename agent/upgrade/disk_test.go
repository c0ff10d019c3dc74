package upgrade

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/provider/durable"
)

// A trial whose offer is replaced before it is recorded is never recorded, whatever the disk does
// first: it would be reported as taken back.
//
// proves PROV-7
func TestAReplacedOfferIsNotRecordedAsATrial(t *testing.T) {
	const program = "#!/bin/sh\nexit 0\n"
	b := newBench(t)
	b.serve(program)
	var written []string
	b.place.replace = func(_ string, data []byte) error {
		written = append(written, string(data))
		return nil
	}
	m, end := b.manager()
	one, two := b.offer("one", b.statement("v1.1.0", program)), b.offer("two", b.statement("v0.9.0", program))
	m.Want(&one)
	b.await(m, "the download", m.Ready)
	m.disk.Lock()
	m.Begin()
	m.Want(&two)
	b.await(m, "the refusal", func() bool { return m.Last() != nil })
	m.disk.Unlock()
	end()
	for _, s := range written {
		if strings.Contains(s, `"trial"`) {
			t.Errorf("written: %s", s)
		}
	}
	if last := written[len(written)-1]; !strings.Contains(last, `"two"`) {
		t.Errorf("written last: %s", last)
	}
}

// The agent's loop reports while the disk hangs: nothing that it asks waits for what is written.
//
// proves PROV-7, SAFE-5
func TestADiskThatHangsHoldsUpNoReport(t *testing.T) {
	const program = "#!/bin/sh\nexit 0\n"
	for name, c := range map[string]struct {
		version string
		before  func(*bench, *Manager) // it hangs
		then    func(*bench, *Manager)
	}{
		"as an offer is refused": {
			version: "v0.9.0",
			before:  func(*bench, *Manager) {},
			then: func(b *bench, m *Manager) {
				b.await(m, "an outcome", func() bool { return m.Last() != nil })
			},
		},
		"as a trial is recorded": {
			version: "v1.1.0",
			before:  func(b *bench, m *Manager) { b.await(m, "the download", m.Ready) },
			then:    func(_ *bench, m *Manager) { m.Begin() },
		},
		"as a trial is undone": {
			version: "v1.1.0",
			before: func(b *bench, m *Manager) {
				b.await(m, "the download", m.Ready)
				m.Begin()
				b.await(m, "the trial", func() bool { return m.Trial() != nil })
			},
			then: func(_ *bench, m *Manager) { m.Want(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.serve(program)
			var disk sync.RWMutex
			b.place.replace = func(path string, data []byte) error {
				disk.RLock()
				defer disk.RUnlock()
				return durable.Replace(path, data, 0o600)
			}
			m, end := b.manager()
			o := b.offer("one", b.statement(c.version, program))
			if c.version == "v0.9.0" {
				disk.Lock()
			}
			m.Want(&o)
			c.before(b, m)
			if c.version != "v0.9.0" {
				disk.Lock()
			}
			c.then(b, m)
			if m.Trial() != nil {
				t.Error("a trial that is not recorded begins")
			}
			_, _ = m.Ready(), m.Last()
			m.Want(nil)
			disk.Unlock()
			end()
			if s := b.place.read(); s.Trial != nil {
				t.Errorf("recorded: %+v", s.Trial)
			}
		})
	}
}

// A state that cannot be read when an offer comes may have another version that runs here, and that
// this offer is over: nothing is fetched, and nothing takes its place, until it is read.
//
// proves PROV-7
func TestAnOfferWhileTheStateCannotBeRead(t *testing.T) {
	const program = "#!/bin/sh\nexit 0\n"
	for name, c := range map[string]struct {
		unreadable func(path string) error
		readable   string // later; "": never
		ready      bool   // the offer is taken then
		why        string // of the outcome
	}{
		"the offer is over": {
			unreadable: func(path string) error { return os.Symlink(path, path) },
			readable:   `{"schema": 1, "last": {"token": "one", "result": "back", "why": "it was no good"}}`,
			why:        "it was no good",
		},
		"it is taken": {
			unreadable: func(path string) error { return os.Symlink(path, path) },
			readable:   `{"schema": 1, "current": {"file": "leasehold-agent-0123456789abcdef"}}`, ready: true,
		},
		"a newer agent's": {
			unreadable: func(path string) error { return os.WriteFile(path, []byte(`{"schema": 2}`), 0o600) },
			why:        "schema 2 is newer than this agent's, 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.serve(program)
			if err := os.Mkdir(b.place.Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			path := b.place.path(stateFile)
			if err := c.unreadable(path); err != nil {
				t.Fatal(err)
			}
			m, end := b.manager()
			o := b.offer("one", b.statement("v1.1.0", program))
			m.Want(&o)
			if c.readable != "" {
				if m.Ready() || b.asked.Load() != 0 {
					t.Error("it is fetched while the state is not known")
				}
				err := os.WriteFile(path+".readable", []byte(c.readable), 0o600)
				if err = errors.Join(err, os.Rename(path+".readable", path)); err != nil {
					t.Fatal(err)
				}
			}
			b.await(m, "an outcome", func() bool { return m.Ready() || m.Last() != nil })
			if m.Ready() != c.ready || !c.ready && !strings.Contains(m.Last().Why, c.why) {
				t.Errorf("ready %t, last %+v", m.Ready(), m.Last())
			}
			end()
			before := c.readable
			if before == "" {
				before = `{"schema": 2}`
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != before {
				t.Errorf("the state was replaced by %s, %v", data, err)
			}
		})
	}
}
