package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/agent/files/roots"
	"github.com/leasehold/leasehold/agent/protocol"
)

// machine is a manager with a coordinator that has contents.
type machine struct {
	t        *testing.T
	root     string
	cfg      Config
	contents map[string]string // by path
	mu       sync.Mutex
	ran      []string
	reloads  int
	asked    int
	hidden   []string
	fails    error // of commands
	damage   bool  // of what is sent
	at       func(step string) error
	ca       *testCA
	clock    time.Duration // what the coordinators' clock has beyond ours
	*Manager
	stop func()
}

func newMachine(t *testing.T) *machine {
	root := t.TempDir()
	m := &machine{
		t: t, root: root, contents: map[string]string{},
		cfg: Config{Roots: []string{root}, StateDir: t.TempDir(), Instance: "web-0-a", Facts: map[string]string{"dir": root}},
	}
	m.start()
	return m
}

// start begins a run of the agent.
func (m *machine) start() {
	m.t.Helper()
	var err error
	m.Manager, err = New(m.cfg, Deps{
		Logger: slog.New(slog.NewTextHandler(m.t.Output(), nil)),
		Reload: func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.reloads++
			return nil
		},
		Command: func(_ context.Context, run []string, _ map[string]string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.ran = append(m.ran, strings.Join(run, " "))
			return m.fails
		},
		Hide: func(_ string, content []byte) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.hidden = append(m.hidden, string(content))
		},
		Hidden: func() {},
		Now: func() time.Time {
			m.mu.Lock()
			defer m.mu.Unlock()
			return time.Now().Add(m.clock)
		},
		At: func(step string) error {
			m.mu.Lock()
			at := m.at
			m.mu.Unlock()
			if at == nil {
				return nil
			}
			return at(step)
		},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { m.Run(ctx) })
	parts.Go(func() { m.coordinate(ctx) })
	m.stop = func() {
		cancel()
		parts.Wait()
	}
}

// coordinate answers as a gateway does, in pieces of three bytes.
func (m *machine) coordinate(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case message := <-m.Asks():
			if message.GetSignRequest() != nil {
				m.sign(message.GetSignRequest())
				continue
			}
			ask := message.GetFetchFile()
			m.mu.Lock()
			m.asked++
			rest := m.contents[ask.GetPath()][ask.GetOffset():]
			if m.damage {
				rest = strings.ToUpper(rest)
			}
			m.mu.Unlock()
			m.Piece(&protocol.FilePiece{
				Path: ask.GetPath(), Version: ask.GetVersion(), Offset: ask.GetOffset(), Data: []byte(rest[:min(3, len(rest))]),
			})
		}
	}
}

func (m *machine) file(path, content string, change func(*protocol.File)) *protocol.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[path] = content
	sum := sha256.Sum256([]byte(content))
	f := &protocol.File{Path: path, Version: "v" + content, Size: uint32(len(content)), Sha256: sum[:], Mode: 0o644}
	if change != nil {
		change(f)
	}
	return f
}

// want sets the wanted files and waits until the manager has done what it can.
func (m *machine) want(hash string, list ...*protocol.File) {
	m.Want(&protocol.Files{ConfigHash: hash, Files: list}, nil)
	synctest.Wait()
}

// fetches returns how often a piece was asked for.
func (m *machine) fetches() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

// steps has a function called at each step of a write.
func (m *machine) steps(at func(step string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = at
}

func (m *machine) on(name string) string {
	data, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func inBubble(t *testing.T, test func(*machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		test(m)
		m.stop()
	})
}

// proves FILE-1, FILE-3
func TestFilesAreDeliveredAndMended(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.Expect(true)
		if why := m.Missing(); why != "no coordinator has sent its files yet" {
			t.Error(why)
		}
		a := m.file("${dir}/a", "a long content", nil)
		m.want("c1", a, m.file("/etc/passwd", "x", nil))
		if m.on("a") != "a long content" || m.Settled("c1") {
			t.Errorf("a is %q, settled %t", m.on("a"), m.Settled("c1"))
		}
		if why := m.Missing(); !strings.Contains(why, "/etc/passwd: "+errOutside.Error()) &&
			!strings.Contains(why, "/etc/passwd") {
			t.Error(why)
		}
		m.want("c2", a)
		if !m.Settled("c2") || m.Settled("c1") || m.Missing() != "" {
			t.Errorf("settled %t, missing %q", m.Settled("c2"), m.Missing())
		}
		asked := m.fetches()
		<-time.After(time.Minute)
		if m.fetches() != asked {
			t.Error("what is there was asked for again")
		}
		must(t, os.WriteFile(filepath.Join(m.root, "a"), []byte("another"), 0o600))
		<-time.After(2 * checkEvery)
		synctest.Wait()
		if s := m.States()[0]; m.on("a") != "a long content" || s.State != Delivered ||
			!strings.Contains(s.Why, "changed on the machine") {
			t.Errorf("a is %q, %+v", m.on("a"), s)
		}
		m.want("c3")
		if m.on("a") != "a long content" || len(m.States()) > 0 || !m.Settled("c3") {
			t.Error("a file that is not wanted any more does not stay")
		}
	})
}

// What follows a change follows it once, again if it fails, and also if the agent dies before it.
//
// proves FILE-3
func TestWhatFollowsAChange(t *testing.T) {
	inBubble(t, func(m *machine) {
		command := func(f *protocol.File) { f.OnChange, f.Run = "run", []string{"nginx", "-s", "reload"} }
		m.fails = errors.New("nginx does not run")
		m.want("c1", m.file("${dir}/a", "one", command), m.file("${dir}/b", "two", command),
			m.file("${dir}/c", "three", func(f *protocol.File) { f.OnChange = "reload" }))
		if len(m.ran) != 1 || m.reloads != 1 || m.Settled("c1") || m.Missing() != "" {
			t.Errorf("ran %v, reloads %d, settled %t, missing %q", m.ran, m.reloads, m.Settled("c1"), m.Missing())
		}
		if s := m.States()[0]; s.State != Error || !strings.Contains(s.Why, "nginx does not run") {
			t.Errorf("%+v", s)
		}
		files := []*protocol.File{m.file("${dir}/a", "one", command), m.file("${dir}/b", "two", command)}
		m.stop()
		m.fails = nil
		m.start()
		m.want("c1", files...)
		if len(m.ran) != 2 || !m.Settled("c1") {
			t.Errorf("ran %v, settled %t", m.ran, m.Settled("c1"))
		}
		<-time.After(time.Minute)
		if len(m.ran) != 2 || m.reloads != 1 {
			t.Errorf("ran %v, reloads %d", m.ran, m.reloads)
		}
	})
}

// A change is recorded before the file is replaced, also if the state file could not be written at
// the first attempt: otherwise an agent that dies in between leaves the workload with the old file.
//
// proves FILE-3
func TestAChangeIsRecordedBeforeTheFileIsReplacedThoughTheDiskFailed(t *testing.T) {
	inBubble(t, func(m *machine) {
		reload := func(f *protocol.File) { f.OnChange = "reload" }
		m.want("c1", m.file("${dir}/a", "one", reload))
		state := filepath.Join(m.cfg.StateDir, "files.json")
		must(t, os.Remove(state))
		must(t, os.Mkdir(state, 0o700)) // nothing can be renamed to it
		two := m.file("${dir}/a", "two", reload)
		m.want("c2", two)
		<-time.After(2 * maxRetry)
		synctest.Wait()
		if m.on("a") != "one" {
			t.Errorf("a is %q, and what follows is not recorded", m.on("a"))
		}
		must(t, os.Remove(state))
		recorded := ""
		m.steps(func(step string) error {
			if step == "rename" {
				data, err := os.ReadFile(state)
				recorded = string(data)
				return err
			}
			return nil
		})
		<-time.After(2 * maxRetry)
		synctest.Wait()
		if m.on("a") != "two" || !strings.Contains(recorded, `"follow":true`) {
			t.Errorf("a is %q, recorded was %q", m.on("a"), recorded)
		}
		if m.reloads != 2 {
			t.Errorf("%d reloads", m.reloads)
		}
	})
}

// The state file has what is known of the files as soon as the disk allows it.
//
// proves FILE-1
func TestADeliveryIsRememberedOnceTheDiskAllowsIt(t *testing.T) {
	inBubble(t, func(m *machine) {
		state := filepath.Join(m.cfg.StateDir, "files.json")
		must(t, os.Mkdir(state, 0o700))
		m.want("c1", m.file("${dir}/a", "one", nil))
		<-time.After(time.Minute)
		if m.on("a") != "one" || !m.Settled("c1") {
			t.Fatalf("a is %q", m.on("a"))
		}
		must(t, os.Remove(state))
		<-time.After(2 * checkEvery)
		synctest.Wait()
		m.stop()
		m.start()
		m.Expect(true)
		if why := m.Missing(); why != "" {
			t.Error(why)
		}
	})
}

// An agent that starts without a coordinator lets the workload start if its files are there.
//
// proves FILE-1
func TestFilesAfterARestartOfTheAgent(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.want("c1", m.file("${dir}/a", "a secret", func(f *protocol.File) { f.Secret, f.Version = true, "s7" }))
		state, err := os.ReadFile(filepath.Join(m.cfg.StateDir, "files.json"))
		if err != nil || strings.Contains(string(state), "a secret") {
			t.Errorf("%s, %v", state, err)
		}
		m.stop()
		m.hidden, m.asked = nil, 0
		m.start()
		m.Expect(true)
		if why := m.Missing(); why != "" {
			t.Error(why)
		}
		m.want("c1", m.file("${dir}/a", "a secret", func(f *protocol.File) { f.Secret, f.Version = true, "s7" }))
		if m.fetches() != 0 || len(m.hidden) != 1 || m.hidden[0] != "a secret" {
			t.Errorf("asked %d times, hidden %q", m.fetches(), m.hidden)
		}
		m.stop()
		must(t, os.Remove(filepath.Join(m.root, "a")))
		m.start()
		m.Expect(true)
		if why := m.Missing(); !strings.Contains(why, "${dir}/a: no coordinator has sent its content yet") {
			t.Error(why)
		}
	})
}

// What is damaged on the way is written nowhere, and asked for again, ever more slowly.
//
// proves FILE-3
func TestDamagedContentIsNotWritten(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.mu.Lock()
		m.damage = true
		m.mu.Unlock()
		m.want("c1", m.file("${dir}/a", "abcdef", nil))
		<-time.After(10 * time.Minute)
		if asked := m.fetches(); asked < 8 || asked > 60 {
			t.Errorf("asked %d times in ten minutes", asked)
		}
		if s := m.States()[0]; s.State != Missing || s.Why != "its content was damaged on the way" ||
			!strings.Contains(m.on("a"), "no such file") {
			t.Errorf("%+v, %q", s, m.on("a"))
		}
		m.mu.Lock()
		m.damage = false
		m.mu.Unlock()
		<-time.After(2 * maxRetry)
		synctest.Wait()
		if m.on("a") != "abcdef" {
			t.Errorf("a is %q", m.on("a"))
		}
	})
}

// What an agent reports as its directories are those in which it writes: a file is outside for the
// agent exactly if it is outside of what it reported.
//
// proves FILE-1
func TestAgentsReportTheDirectoriesInWhichTheyWrite(t *testing.T) {
	dir := t.TempDir()
	m, err := New(Config{Roots: []string{dir + "/a/", dir + "/b/../c"}, StateDir: dir}, Deps{
		Logger: slog.New(slog.DiscardHandler), Reload: func() error { return nil }, Now: time.Now, Hidden: func() {},
		Command: func(context.Context, []string, map[string]string) error { return nil },
		Hide:    func(string, []byte) {},
	})
	must(t, err)
	reported := (&protocol.Report{FilesRoots: m.Roots()}).Fit().GetFilesRoots()
	if len(reported) != 2 || reported[0] != dir+"/a" || reported[1] != dir+"/c" {
		t.Fatalf("%s: reported are %q", dir, reported)
	}
	for _, path := range []string{dir + "/a/x", dir + "/b/x", dir + "/c/x", dir + "/c", dir + "/a/../c/x", "/etc/x"} {
		err := m.keep(t.Context(), &protocol.File{Path: path, Problem: "it has no content"}, nil)
		_, _, inside := roots.Find(path, reported)
		if err == nil || errors.Is(err, errOutside) == inside {
			t.Errorf("%s: the agent says %v, and the command that it is inside: %t", path, err, inside)
		}
	}
	if got := (*Manager)(nil).Roots(); got != nil {
		t.Errorf("an agent that keeps no files reports %q", got)
	}
}

// A disk that hangs while it is looked for a file holds up no report.
//
// proves FILE-1, SAFE-5
func TestStatesAreReportedThoughTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.stop()
		hung, looked := make(chan struct{}), false
		m.steps(func(step string) error {
			if step == "look for it" {
				looked = true
				<-hung
			}
			return nil
		})
		m.Want(&protocol.Files{ConfigHash: "c1", Files: []*protocol.File{
			{Path: "${dir}/a", Version: "1", Problem: "it cannot be rendered"},
		}}, nil)
		synctest.Wait()
		if !looked {
			t.Error("the disk was not asked")
		}
		if s := m.States(); len(s) != 1 || m.Settled("c1") || m.Missing() == "" {
			t.Errorf("%+v", s)
		}
		close(hung)
		synctest.Wait()
		if s := m.States(); len(s) != 1 || s[0].State != Missing {
			t.Errorf("%+v", s)
		}
	})
}

// Nor does a report wait for the disk after a restart of the agent, before a coordinator has sent
// the list of files.
//
// proves FILE-1, SAFE-5
func TestReportsAreMadeThoughTheDiskHangs(t *testing.T) {
	inBubble(t, func(m *machine) {
		m.want("c1", m.file("${dir}/a", "a", nil))
		m.stop()
		must(t, os.Remove(filepath.Join(m.root, "a")))
		m.start()
		m.Expect(true)
		hung, asked := make(chan struct{}), 0
		m.steps(func(string) error {
			asked++
			<-hung
			return nil
		})
		began := time.Now()
		for range 10 {
			if why, known := m.MissingSoon(); known {
				t.Errorf("the disk has not answered, and missing is %q", why)
			}
		}
		took := time.Since(began)
		synctest.Wait()
		if took > backWait || asked != 1 {
			t.Errorf("it took %s, and the disk was asked %d times", took, asked)
		}
		close(hung)
		synctest.Wait()
		if why, known := m.MissingSoon(); !known || !strings.Contains(why, "${dir}/a") || m.Missing() != why {
			t.Error(why, known)
		}
	})
}
