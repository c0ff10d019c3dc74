package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/agent/release"
	"github.com/leasehold/leasehold/provider/durable"
)

const (
	stateFile   = "state.json"
	ackFile     = "acknowledged"
	stateSchema = 1
)

// Result is the kind of an offer's outcome.
type Result string

// The results.
const (
	Installed Result = "installed" // the version runs
	Refused   Result = "refused"   // it must not be installed here
	Failed    Result = "failed"    // it could not be downloaded
	Back      Result = "back"      // its trial failed, and the version before runs again
)

// Outcome describes how the last offer ended.
type Outcome struct {
	Token   string `json:"token"`
	Version string `json:"version,omitempty"`
	Result  Result `json:"result"`
	Why     string `json:"why,omitempty"`
}

// program is a program in the directory.
type program struct {
	File      string `json:"file"`
	Statement string `json:"statement"` // signed
	// Over is the version of the installed program that this one replaces.
	Over string `json:"over"`
}

// trial is a trial under way.
type trial struct {
	Token   string  `json:"token"`
	Version string  `json:"version"`
	Program program `json:"program"`
}

// state is the content of the state file. The zero value means that the installed program runs.
type state struct {
	Schema  int      `json:"schema"`
	Current *program `json:"current,omitempty"`
	Trial   *trial   `json:"trial,omitempty"`
	Last    *Outcome `json:"last,omitempty"`
	// Starts are the recent starts of Current that did not end in order.
	Starts []time.Time `json:"starts,omitempty"`
	Boot   string      `json:"boot,omitempty"` // the kernel boot of Starts
}

// A version that was started more than maxStarts times within startsWithin is taken back: it was
// acknowledged, and crashes all the same. A service manager may give up after five starts.
const (
	maxStarts    = 3
	startsWithin = 10 * time.Minute
)

// Place is the directory with an agent's programs.
type Place struct {
	Dir     string
	Version string       // version of this program
	Keys    release.Keys // the keys whose signatures count
	Log     *slog.Logger
	Boot    string // the kernel's present boot; "": unknown, and all starts count as of one boot

	self string           // path of this program; empty: the running executable
	now  func() time.Time // nil: time.Now
	// replace writes the state file; nil: durable.Replace.
	replace func(path string, data []byte) error
}

// Platform returns this machine's operating system and architecture.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func (p *Place) path(name string) string { return filepath.Join(p.Dir, name) }

// read returns the state, or the zero value if it cannot be read: the installed program runs.
func (p *Place) read() state {
	s, _ := p.load()
	return s
}

// load returns the state and whether it is known. It is unknown if the file cannot be read now or
// was written by a newer agent. A damaged file counts as an empty one, since it will never be
// readable.
func (p *Place) load() (s state, known bool) {
	s, known, err := p.open()
	if err != nil {
		p.Log.Warn("state of agent upgrades is not known: the installed program runs", "error", err)
	}
	return s, known
}

// errNewer means that a newer agent wrote the state: this one will never know it.
var errNewer = errors.New("is newer than this agent's")

// open is load, and returns why the state is left out.
func (p *Place) open() (s state, known bool, err error) {
	data, err := os.ReadFile(p.path(stateFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state{}, true, nil
	case err != nil:
		return state{}, false, err
	}
	err = json.Unmarshal(data, &s)
	switch {
	case s.Schema > stateSchema:
		return state{}, false, fmt.Errorf("schema %d %w, %d", s.Schema, errNewer, stateSchema)
	case err != nil:
		return state{}, true, err
	}
	return s, true, nil
}

func (p *Place) write(s state) error {
	s.Schema = stateSchema
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write state of agent upgrades: %w", err)
	}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		return fmt.Errorf("write state of agent upgrades: %w", err)
	}
	replace := p.replace
	if replace == nil {
		replace = func(path string, data []byte) error { return durable.Replace(path, data, 0o600) }
	}
	if err := replace(p.path(stateFile), append(data, '\n')); err != nil {
		return fmt.Errorf("write state of agent upgrades: %w", err)
	}
	return nil
}

// save writes the state and reports whether it was written. If it cannot be written, the next start
// decides the same, as long as all files stay: see settle.
func (p *Place) save(s state) bool {
	err := p.write(s)
	if err != nil {
		p.Log.Warn("outcome of the agent upgrade is not kept", "error", err)
	}
	return err == nil
}

// Start completes what an earlier run left unfinished, and returns the program that must run in
// place of this one; "" means this one. It changes nothing if the state is unknown.
func (p *Place) Start() string {
	before, known := p.load()
	if !known { // the next start may read it, and then needs all files
		return ""
	}
	s := p.settle(before)
	run := ""
	if s.Current != nil && !p.isSelf(s.Current) {
		if err := p.check(s.Current); err != nil {
			p.Log.Warn("installed program runs instead of the upgraded one", "why", err)
			s.Current = nil
		} else if s = p.started(s); s.Current != nil {
			run = p.path(s.Current.File)
		}
	}
	if !reflect.DeepEqual(s, before) {
		if !p.save(s) {
			return run
		}
		_ = os.Remove(p.path(ackFile)) // it has a meaning only while a trial is recorded
	}
	p.clean(s)
	return run
}

// started counts a start of the version that runs in place of this one. After too many starts the
// version is taken back, however long ago it was acknowledged. A reset of the machine ends the
// agent too, so only starts of this boot count.
func (p *Place) started(s state) state {
	now := time.Now
	if p.now != nil {
		now = p.now
	}
	at := now().UTC()
	if s.Boot != p.Boot {
		s.Starts, s.Boot = nil, p.Boot
	}
	s.Starts = slices.DeleteFunc(slices.Clone(s.Starts), func(t time.Time) bool { // clocks can be set back
		return t.After(at) || at.Sub(t) > startsWithin
	})
	if len(s.Starts) < maxStarts {
		s.Starts = append(s.Starts, at)
		return s
	}
	out := Outcome{Result: Back, Why: fmt.Sprintf("it ended by itself %d times within %s", maxStarts, startsWithin)}
	if st, err := p.Keys.Open(s.Current.Statement); err == nil {
		out.Version = st.Version
	}
	if s.Last != nil && s.Last.Version == out.Version {
		out.Token = s.Last.Token
	}
	p.Log.Warn("version of the agent was taken back", "version", out.Version, "why", out.Why)
	s.Current, s.Starts, s.Last = nil, nil, &out
	return s
}

// Ended records that the agent ended in order, so that its next start does not count as after a
// crash. It is part of the contract between releases: the version whose starts the installed
// program counts calls it. A version without it would have every start counted, and therefore
// passes no trial.
func (p *Place) Ended() {
	if s := p.read(); len(s.Starts) > 0 {
		s.Starts = nil
		p.save(s)
	}
}

// begin records a trial.
func (p *Place) begin(s state) error {
	if err := os.Remove(p.path(ackFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // a leftover would acknowledge the new program
	}
	return p.write(s)
}

// Forget makes the installed program run from now on, because the program in its place cannot.
func (p *Place) Forget() {
	s := p.read()
	if s.Current == nil {
		return
	}
	s.Current = nil
	if p.save(s) {
		p.clean(s)
	}
}

// settle ends a trial that an earlier run began.
func (p *Place) settle(s state) state {
	if s.Trial == nil {
		return s
	}
	if _, err := os.Stat(p.path(ackFile)); err == nil {
		return s.won()
	}
	return s.lost("the agent or its machine ended before the new version was acknowledged")
}

// won returns the state after a trial that was acknowledged.
func (s state) won() state {
	t := s.Trial
	s.Current, s.Trial, s.Starts = &t.Program, nil, nil
	s.Last = &Outcome{Token: t.Token, Version: t.Version, Result: Installed}
	return s
}

// lost returns the state after a trial that is taken back.
func (s state) lost(why string) state {
	t := s.Trial
	s.Trial, s.Last = nil, &Outcome{Token: t.Token, Version: t.Version, Result: Back, Why: why}
	return s
}

// untried is the state as if there had been no trial.
func (s state) untried() state {
	s.Trial = nil
	return s
}

// check returns why a program must not run in place of this one; nil if it may.
func (p *Place) check(c *program) error {
	if c.Over != p.Version {
		return fmt.Errorf("version %s was installed since, by hand", p.Version)
	}
	return p.verify(c)
}

// verify returns why a program must not run on this machine at all.
func (p *Place) verify(c *program) error {
	st, err := p.Keys.Open(c.Statement)
	if err != nil {
		return err
	}
	if st.Platform != Platform() {
		return fmt.Errorf("it is for %s, and this machine is %s", st.Platform, Platform())
	}
	return matches(p.path(c.File), st)
}

// matches compares a file with the signed size and hash.
func matches(path string, st release.Statement) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, st.Size+1))
	switch {
	case err != nil:
		return err
	case n != st.Size:
		return fmt.Errorf("%s does not have the %d bytes that were signed", path, st.Size)
	case hex.EncodeToString(sum.Sum(nil)) != st.SHA256:
		return fmt.Errorf("%s is not the program that was signed: its hash is another", path)
	}
	return nil
}

// isSelf reports whether this process runs a program from the directory.
func (p *Place) isSelf(c *program) bool {
	self := p.self
	if self == "" {
		self = "/proc/self/exe"
	}
	own, err := os.Stat(self)
	if err != nil {
		return false
	}
	other, err := os.Stat(p.path(c.File))
	return err == nil && os.SameFile(own, other)
}

// over returns the version of the installed program, which may be the one that this program
// replaces.
func (p *Place) over(s state) string {
	if s.Current != nil && p.isSelf(s.Current) {
		return s.Current.Over
	}
	return p.Version
}

// ours reports whether a file in the directory belongs to upgrades. Other files may be there too: a
// workload without a directory of its own runs in the agent's.
func ours(name string) bool {
	return name == ackFile || strings.HasPrefix(name, "."+stateFile) || programFile.MatchString(name)
}

var programFile = regexp.MustCompile(`^leasehold-agent-[0-9a-f]{16}(\.new)?$`)

// clean removes files that the state does not name: partial downloads and earlier programs.
func (p *Place) clean(s state) {
	keep := []string{stateFile}
	if s.Current != nil {
		keep = append(keep, s.Current.File)
	}
	if s.Trial != nil {
		keep = append(keep, s.Trial.Program.File, ackFile)
	}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return // no directory yet
	}
	for _, e := range entries {
		if ours(e.Name()) && !slices.Contains(keep, e.Name()) {
			if err := os.Remove(p.path(e.Name())); err != nil {
				p.Log.Warn("file of an agent upgrade is left", "error", err)
			}
		}
	}
}
