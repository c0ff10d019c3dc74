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

// Result is how an offer ended.
type Result string

// The results.
const (
	Installed Result = "installed" // the version runs
	Refused   Result = "refused"   // it must not be installed here
	Failed    Result = "failed"    // it could not be had
	Back      Result = "back"      // it was tried, and the version before runs again
)

// Outcome is how the last offer ended.
type Outcome struct {
	Token   string `json:"token"`
	Version string `json:"version,omitempty"`
	Result  Result `json:"result"`
	Why     string `json:"why,omitempty"`
}

// program is one in the directory.
type program struct {
	File      string `json:"file"`
	Statement string `json:"statement"` // signed
	// Over is the version of the installed program that it runs in place of.
	Over string `json:"over"`
}

// trial is one that is under way.
type trial struct {
	Token   string  `json:"token"`
	Version string  `json:"version"`
	Program program `json:"program"`
}

// state is the state file. The zero value is of a machine that runs what is installed.
type state struct {
	Schema  int      `json:"schema"`
	Current *program `json:"current,omitempty"`
	Trial   *trial   `json:"trial,omitempty"`
	Last    *Outcome `json:"last,omitempty"`
	// Starts are when Current was started lately: it ended otherwise than in order since.
	Starts []time.Time `json:"starts,omitempty"`
	Boot   string      `json:"boot,omitempty"` // the boot of the kernel in which they were
}

// A version that is started more often than mostStarts within startsWithin does not run: it was
// acknowledged, and crashes all the same. A service manager may give up after five starts.
const (
	mostStarts   = 3
	startsWithin = 10 * time.Minute
)

// Place is the directory of programs of one agent.
type Place struct {
	Dir     string
	Version string       // of this program
	Keys    release.Keys // whose signatures count
	Log     *slog.Logger
	Boot    string // the kernel's present boot; "": unknown, and all starts count as of one

	self string           // path of this program; empty: of this process
	now  func() time.Time // nil: time.Now
	// replace has the state file hold the data; nil: durable.Replace.
	replace func(path string, data []byte) error
}

// Platform returns what this machine runs.
func Platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func (p *Place) path(name string) string { return filepath.Join(p.Dir, name) }

// read reads the state. One that cannot be read is left out: the installed program runs.
func (p *Place) read() state {
	s, _ := p.load()
	return s
}

// load is read, and reports whether the state is known. It is not if the file cannot be read now,
// or a newer agent wrote it. A damaged file says nothing, and never will.
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

// save writes the state, and reports whether it is kept. If it cannot be written, the next start
// comes to the same, as long as all files stay: see settle.
func (p *Place) save(s state) bool {
	err := p.write(s)
	if err != nil {
		p.Log.Warn("outcome of the agent upgrade is not kept", "error", err)
	}
	return err == nil
}

// Start ends what an earlier run left unfinished, and returns the program that is to run in place
// of this one; "" if this is the one. It changes nothing if the state is not known.
func (p *Place) Start() string {
	before, known := p.load()
	if !known { // the next start may know it, and needs all files for that
		return ""
	}
	s := p.settle(before)
	run := ""
	if s.Current != nil && !p.isSelf(s.Current) {
		if err := p.check(s.Current); err != nil {
			p.Log.Warn("installed program runs in place of the one that the agent was upgraded to", "why", err)
			s.Current = nil
		} else if s = p.started(s); s.Current != nil {
			run = p.path(s.Current.File)
		}
	}
	if !reflect.DeepEqual(s, before) {
		if !p.save(s) {
			return run
		}
		_ = os.Remove(p.path(ackFile)) // only a trial that is recorded gives it a meaning
	}
	p.clean(s)
	return run
}

// started counts a start of the version that runs in place of this one. After too many it is taken
// back, however long ago it was acknowledged. A machine that was reset has ended it, too, so only
// starts of this boot count.
func (p *Place) started(s state) state {
	now := time.Now
	if p.now != nil {
		now = p.now
	}
	at := now().UTC()
	if s.Boot != p.Boot {
		s.Starts, s.Boot = nil, p.Boot
	}
	s.Starts = slices.DeleteFunc(slices.Clone(s.Starts), func(t time.Time) bool { // clocks are set back, too
		return t.After(at) || at.Sub(t) > startsWithin
	})
	if len(s.Starts) < mostStarts {
		s.Starts = append(s.Starts, at)
		return s
	}
	out := Outcome{Result: Back, Why: fmt.Sprintf("it ended by itself %d times within %s", mostStarts, startsWithin)}
	if st, err := p.Keys.Open(s.Current.Statement); err == nil {
		out.Version = st.Version
	}
	if s.Last != nil && s.Last.Version == out.Version {
		out.Token = s.Last.Token
	}
	p.Log.Warn("version of the agent is taken back", "version", out.Version, "why", out.Why)
	s.Current, s.Starts, s.Last = nil, nil, &out
	return s
}

// Ended records that the agent ended in order: its next start speaks for no crash. It is part of
// the contract between releases: it runs in the version whose starts the installed program counts,
// so of a version without it every start would count. No release that passes a trial is without it.
func (p *Place) Ended() {
	if s := p.read(); len(s.Starts) > 0 {
		s.Starts = nil
		p.save(s)
	}
}

// begin records a trial.
func (p *Place) begin(s state) error {
	if err := os.Remove(p.path(ackFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // it would speak for the new program
	}
	return p.write(s)
}

// Forget has the installed program run from now on: the one in its place cannot.
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

// check reports why a program must not run in place of this one; nil if it may.
func (p *Place) check(c *program) error {
	if c.Over != p.Version {
		return fmt.Errorf("version %s was installed since, by hand", p.Version)
	}
	return p.verify(c)
}

// verify reports why a program must not run on this machine at all.
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

// matches compares a file with what was signed.
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

// isSelf reports whether this process runs a program of the directory.
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

// over returns the version of the installed program: this one's, unless this one runs in its place.
func (p *Place) over(s state) string {
	if s.Current != nil && p.isSelf(s.Current) {
		return s.Current.Over
	}
	return p.Version
}

// ours reports whether a file of the directory is an upgrade's. Others may be there as well: a
// workload without a directory of its own runs in the agent's.
func ours(name string) bool {
	return name == ackFile || strings.HasPrefix(name, "."+stateFile) || programFile.MatchString(name)
}

var programFile = regexp.MustCompile(`^leasehold-agent-[0-9a-f]{16}(\.new)?$`)

// clean removes what no state names: half a download, and programs before.
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
		return // there is none yet
	}
	for _, e := range entries {
		if ours(e.Name()) && !slices.Contains(keep, e.Name()) {
			if err := os.Remove(p.path(e.Name())); err != nil {
				p.Log.Warn("file of an agent upgrade is left", "error", err)
			}
		}
	}
}
