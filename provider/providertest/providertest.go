package providertest

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/proof"
	"github.com/leasehold/leasehold/provider/suite"
)

// Harness describes a provider to the suite. Promises that need an omitted field are not proved.
type Harness = suite.Harness

// Run plays the whole suite as subtests. A promise that is not proved fails, unless it is named in
// expectUnproved. The results are recorded under a name: see Record.
func Run(t *testing.T, name string, h Harness, expectUnproved ...string) {
	for _, promise := range suite.Promises() {
		t.Run(promise, func(t *testing.T) { Play(t, name, h, promise, expectUnproved...) })
	}
}

// Play plays one promise of the suite.
func Play(t *testing.T, name string, h Harness, promise string, expectUnproved ...string) {
	t.Helper()
	r := suite.Check(t.Context(), h, promise)
	if err := Record(name, r); err != nil {
		t.Error(err)
	}
	Expect(t, r, expectUnproved)
}

// Expect fails a test unless a promise has the expected outcome: proved, or not proved if it is
// named in unproved.
func Expect(t testing.TB, r proof.Result, unproved []string) {
	t.Helper()
	expected := slices.Contains(unproved, r.Promise)
	switch why := strings.Join(r.Why, "\n"); {
	case r.Outcome == proof.Failed:
		t.Error(why)
	case r.Outcome == proof.NotProved && !expected:
		t.Errorf("not proved, and not expected to be: %s", why)
	case r.Outcome == proof.Proved && expected:
		t.Error("proved: do not expect it to be unproved any more")
	}
}

// Results is the environment variable with the directory for results. scripts/promises.sh sets it,
// and writes docs/providers/promises.md from the files there.
const Results = "LEASEHOLD_PROMISES"

// Recorded is the recorded result of one promise.
type Recorded struct {
	Provider string        `json:"provider"`
	Promise  string        `json:"promise"`
	Outcome  suite.Outcome `json:"outcome"`
	Why      []string      `json:"why,omitempty"`
}

// Record writes a result to the directory for results, if there is one. If a promise is played
// several times, for example in two zones, the worst result counts.
func Record(name string, r suite.Result) error {
	dir := os.Getenv(Results)
	if dir == "" {
		return nil
	}
	now := Recorded{Provider: name, Promise: r.Promise, Outcome: r.Outcome, Why: r.Why}
	file := filepath.Join(dir, name+"."+r.Promise+".json")
	recording.Lock()
	defer recording.Unlock()
	var before Recorded
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &before)
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && badness(before.Outcome) >= badness(now.Outcome):
		return nil
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

var recording sync.Mutex

// badness orders outcomes, the worst last.
func badness(o suite.Outcome) int {
	return slices.Index([]suite.Outcome{suite.Proved, suite.NotProved, suite.Failed}, o)
}

// Request is a plausible request for a machine.
func Request(shard, instance, zone string, t provider.Template) provider.CreateRequest {
	return suite.Request(shard, instance, zone, t)
}
