package reload_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/coordinator/reload"
)

// shelf is files in memory.
type shelf struct {
	mu       sync.Mutex // of text and err
	text     string
	err      error
	problems []string
}

// set changes the file.
func (s *shelf) set(text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.err = text, err
}

func (s *shelf) config(settle time.Duration) reload.Config[string, string] {
	return reload.Config[string, string]{
		Read: func() (string, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.text, s.err
		},
		Parse: func(raw, before string) (string, error) {
			if raw == "" {
				return "", errors.New("empty after " + before)
			}
			return "<" + raw + ">", nil
		},
		Settle: settle,
		Failed: func(err error) { s.problems = append(s.problems, err.Error()) },
	}
}

func TestFilesThatMakeNoSenseChangeNothing(t *testing.T) {
	s := &shelf{text: "a"}
	f, err := reload.Open(s.config(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text    string
		err     error
		changed bool
		want    string
	}{
		{"a", nil, false, "<a>"},
		{"b", nil, true, "<b>"},
		{"", nil, false, "<b>"},
		{"", nil, false, "<b>"},
		{"c", errors.New("half of it"), false, "<b>"},
		{"b", nil, false, "<b>"},
		{"", nil, false, "<b>"}, // which is told again
		{"c", nil, true, "<c>"},
	} {
		s.text, s.err = c.text, c.err
		if changed := f.Look(); changed != c.changed || f.Latest() != c.want {
			t.Errorf("%q, %v: changed %t to %s, want %t, %s", c.text, c.err, changed, f.Latest(), c.changed, c.want)
		}
	}
	if want := []string{"empty after <b>", "half of it", "empty after <b>"}; !slices.Equal(s.problems, want) {
		t.Errorf("told %q, want %q", s.problems, want)
	}
	s.text = ""
	if _, err := reload.Open(s.config(0)); err == nil {
		t.Error("what makes no sense at first was taken")
	}
}

// Files are copied one after the other: what stands for a moment only was never meant.
func TestFilesCountOnceTheyStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{text: "a"}
		f, err := reload.Open(s.config(2 * reload.Every))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var heard []string
		go f.Run(ctx, func() { heard = append(heard, f.Latest()) })
		for _, text := range []string{"b", "", "c"} {
			s.set(text, nil)
			<-time.After(2*reload.Every - 1)
			synctest.Wait()
		}
		<-time.After(2 * reload.Every)
		synctest.Wait()
		if want := []string{"<c>"}; !slices.Equal(heard, want) || len(s.problems) > 0 {
			t.Errorf("heard %q, want %q; told %q", heard, want, s.problems)
		}
	})
}

// What is asked for only now and then is looked at when it is asked for.
func TestNowIsAtMostASecondOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{text: "a"}
		f, err := reload.Open(s.config(0))
		if err != nil {
			t.Fatal(err)
		}
		s.text = "b"
		if now := f.Now(); now != "<a>" {
			t.Errorf("%s, and they were looked at just now", now)
		}
		<-time.After(reload.Every)
		if now := f.Now(); now != "<b>" {
			t.Errorf("%s, a second later", now)
		}
	})
}
