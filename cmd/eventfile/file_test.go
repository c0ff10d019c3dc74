package eventfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// written is a file with one record of each kind.
func written(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Head{Shard: "s", From: begin, To: begin.Add(time.Hour), Kept: store.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	g := store.DefaultGroup()
	g.Name, g.Provider = "web", "process"
	g.Complete()
	for _, err := range []error{
		w.Group(g), w.Instance(store.Instance{Schema: 1, ID: "web-0-a", Group: "web", Managed: true, Phase: store.Running}),
		w.Day(store.Encode(store.Day{Schema: 1, Group: "web", Day: "2026-02-28"})),
		w.Load(store.Encode(store.Load{Schema: 1, Group: "web", Hour: begin})),
		w.Event(store.Encode(store.JournalEntry{
			Schema: 1, At: begin, Group: "web", Instance: "web-0-a", Verdict: store.Dead, What: "dead",
		})), w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// What was written is read again.
//
// proves DAY-5
func TestFile(t *testing.T) {
	c, err := Read(strings.NewReader(written(t)), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	p := c.Past
	if c.Head.Shard != "s" || len(c.Groups) != 1 || len(p.Entries) != 1 || p.Entries[0].Verdict != store.Dead ||
		p.Entries[0].What != "" || len(p.Days) != 1 || len(p.Loads) != 1 || p.Instances[0].Phase != store.Running ||
		!p.From.Equal(begin) || p.Kept != time.Hour {
		t.Errorf("%+v", c)
	}
}

// A file that is not whole is refused with the place at which it is wrong.
//
// proves DAY-5
func TestDamagedFiles(t *testing.T) {
	good := written(t)
	lines := strings.SplitAfter(good, "\n")
	for name, c := range map[string]struct {
		text string
		line int
		is   error
	}{
		"empty":              {"", 1, ErrCut},
		"something else":     {"group: web\n", 1, ErrNoEvents},
		"another document":   {"{\"groups\": []}\n", 1, ErrNoEvents},
		"of a newer program": {strings.Replace(good, `"leasehold_events":1`, `"leasehold_events":2`, 1), 1, ErrNewer},
		"newer records":      {strings.Replace(good, `"event":{"schema":1`, `"event":{"schema":9`, 1), 6, ErrNewer},
		"cut in a line":      {good[:len(good)/2], 0, ErrCut},
		"cut between lines":  {strings.Join(lines[:4], ""), 5, ErrCut},
		"a line is missing":  {strings.Join(lines[:3], "") + strings.Join(lines[4:], ""), 6, ErrDamaged},
		"a byte is another":  {strings.Replace(good, "web-0-a", "web-0-b", 1), 7, ErrDamaged},
		"no JSON":            {lines[0] + "{\n", 2, nil},
		"something follows":  {good + "x", 7, nil},
	} {
		_, err := Read(strings.NewReader(c.text), func(int) {})
		var wrong *Error
		if !errors.As(err, &wrong) || c.line != 0 && wrong.Line != c.line || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
