package checks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/leasehold/leasehold/tests/tier" // properties draw from one seed every day
)

// story writes a verdict after each result: + passes, - fails. Each step is H or U, with ? while
// pending, and what speaks against it.
func story(v Verdict, results string, rules Rules) string {
	var out []string
	show := func() {
		s := map[bool]string{true: "H", false: "U"}[v.Healthy]
		if v.Pending {
			s += "?"
		}
		if v.Against > 0 {
			s += fmt.Sprint(v.Against)
		}
		out = append(out, s)
	}
	show()
	for _, r := range results {
		v, _ = v.After(map[rune]Result{'+': "", '-': "ill"}[r], rules, time.Time{})
		show()
	}
	return strings.Join(out, " ")
}

// proves DET-9
func TestVerdictsChangeByThresholdsAlone(t *testing.T) {
	two := Rules{Unhealthy: 2, Healthy: 2}
	for _, c := range []struct {
		name    string
		assume  bool
		rules   Rules
		results string
		want    string
	}{
		{"new and well", false, two, "+++", "U? U?1 H H"},
		{"new and ill", false, two, "---", "U? U? U U"},
		{"new and undecided", false, two, "+-+-++", "U? U?1 U? U?1 U? U?1 H"},
		{"one failure is none", false, two, "++-+-+", "U? U?1 H H1 H H1 H"},
		{"two are", false, two, "++--", "U? U?1 H H1 U"},
		{"and it takes two to recover", false, two, "++--+-++", "U? U?1 H H1 U U1 U U1 H"},
		{"live update, well", true, two, "++", "H? H? H"},
		{"live update, ill", true, two, "--", "H? H?1 U"},
		{"live update, undecided", true, two, "-+-+-", "H? H?1 H? H?1 H? H?1"},
		{
			"thresholds differ", false,
			Rules{Unhealthy: 3, Healthy: 5},
			"++++-+++++--+---",
			"U? U?1 U?2 U?3 U?4 U? U?1 U?2 U?3 U?4 H H1 H2 H H1 H2 U",
		},
	} {
		if got := story(Assume(c.assume, time.Time{}), c.results, c.rules); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// proves DET-9
func TestWhyAndSinceOfAVerdict(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	v := Assume(false, at(0))
	for i, c := range []struct {
		result  Result
		why     string
		since   int
		decided bool
	}{
		{"refused", "refused", 0, false},
		{"", "refused", 0, false}, // it does not pass yet
		{"", "", 2, true},
		{"", "", 2, false},
		{"hung", "hung", 2, false}, // a warning, reported beside the verdict
		{"gone", "gone", 5, true},
		{"hung", "hung", 5, false},
	} {
		var decided bool
		v, decided = v.After(c.result, Rules{2, 2}, at(i))
		if v.Why != c.why || !v.Since.Equal(at(c.since)) || decided != c.decided {
			t.Errorf("after result %d: %+v, decided %t; want why %q, since %d, decided %t", i, v, decided, c.why,
				c.since, c.decided)
		}
	}
	if v := Assume(false, at(0)); v.Why != notYet {
		t.Errorf("before the first result: %q", v.Why)
	}
}

// An oracle that looks through the whole history each time.
func oracle(assumed bool, history []bool, rules Rules) (healthy, pending bool) {
	healthy, pending = assumed, true
	for end := range history {
		needed := rules.Unhealthy
		if history[end] {
			needed = rules.Healthy
		}
		run := 0
		for i := end; i >= 0 && history[i] == history[end]; i-- {
			run++
		}
		if run >= needed {
			healthy, pending = history[end], false
		}
	}
	return healthy, pending
}

// proves DET-9
func TestVerdictIsTheOracles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := Rules{
			Unhealthy: rapid.IntRange(2, 10).Draw(t, "unhealthy"),
			Healthy:   rapid.IntRange(2, 10).Draw(t, "healthy"),
		}
		assumed := rapid.Bool().Draw(t, "assumed")
		stay := rapid.IntRange(1, 12).Draw(t, "stay") // how long results stay the same, so that long runs occur
		v, at := Assume(assumed, time.Time{}), time.Time{}
		var history []bool
		last := rapid.Bool().Draw(t, "first")
		for range rapid.IntRange(0, 80).Draw(t, "results") {
			if rapid.IntRange(0, stay).Draw(t, "turn") == 0 {
				last = !last
			}
			history = append(history, last)
			at = at.Add(time.Second)
			before := v
			result := Result("ill")
			if last {
				result = ""
			}
			var decided bool
			v, decided = v.After(result, rules, at)
			healthy, pending := oracle(assumed, history, rules)
			needed := rules.Unhealthy
			if !v.Healthy {
				needed = rules.Healthy
			}
			switch {
			case v.Healthy != healthy || v.Pending != pending:
				t.Fatalf("after %v: %+v, want healthy %t, pending %t", history, v, healthy, pending)
			case decided != (before.Healthy != v.Healthy || before.Pending != v.Pending):
				t.Fatalf("decided is %t from %+v to %+v", decided, before, v)
			case v.Since.Equal(at) != (before.Healthy != v.Healthy):
				t.Fatalf("since is new without a new verdict, or is not: %+v", v)
			case v.Against < 0 || v.Against >= needed:
				t.Fatalf("%d of %d speak against %+v", v.Against, needed, v)
			case (v.Why == "") != (v.Healthy && last):
				t.Fatalf("why is %q, and the last result passes: %t", v.Why, last)
			}
		}
	})
}
