package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.path, "package", "", "the package, relative to the project's root")
	flag.IntVar(&o.every, "every", 1,
		"try only one mutant of so many, chosen by name: the same ones while the source around them changes")
	flag.StringVar(&o.only, "only", "",
		"try only mutants whose name (file, function, operator, text) matches this expression")
	flag.BoolVar(&o.listed, "listed", false,
		"try only the mutants that are listed as accepted, to see which of them a new test catches")
	flag.DurationVar(&o.cheap, "cheap", 0,
		"leave out tests that take more processor time than this; what they alone would catch counts as a survivor")
	flag.StringVar(&o.tests, "tests", "",
		"run only tests and long subtests (Test/sub) that match this expression, for example those that name one rule")
	flag.StringVar(&o.from, "from", "",
		"take the tests of this package instead of the package's own")
	flag.BoolVar(&o.keep, "keep", false, "keep the changed source and the test binary, and say where")
	flag.Parse()
	if err := mutate(o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	path   string
	every  int
	only   string
	listed bool
	cheap  time.Duration
	tests  string
	from   string
	keep   bool
}

func mutate(o options) error {
	gomod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the project's source: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(gomod)))
	if o.path = filepath.Clean(o.path); o.path == "." || o.every < 1 {
		return errors.New("name a package, for example -package store; -every is 1 or more")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	tests, err := regexp.Compile(o.tests)
	if err != nil {
		return fmt.Errorf("-tests: %w", err)
	}
	accepted, err := readAccepted(acceptedFile(root, o.path))
	if err != nil {
		return err
	}
	src, err := load(root, o.path)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Println("kept in", temp)
	} else {
		defer func() { _ = os.RemoveAll(temp) }()
	}
	changed, mutants := rewrite(src)
	from := src.dir
	if o.from != "" {
		from = filepath.Join(root, o.from)
	}
	b, err := build(src, changed, temp, from)
	if err != nil {
		return err
	}
	if err := b.survey(tests, func(done, all int, name string) {
		progress("%d of %d tests surveyed, now %s", done, all, name)
	}); err != nil {
		return err
	}
	if o.cheap > 0 {
		b.tests = slices.DeleteFunc(b.tests, func(t test) bool { return t.cost > o.cheap })
	}
	if len(b.failing) > 0 {
		fmt.Printf("not counted, because they fail without a mutant: %s\n", strings.Join(b.failing, ", "))
	}

	var chosen []mutant
	for _, m := range mutants {
		_, listed := accepted[m.key()]
		if sampled(m.key(), o.every) && only.MatchString(m.key()) && (listed || !o.listed) {
			chosen = append(chosen, m)
		}
	}
	outcomes := map[string]outcome{}
	begun, lived := time.Now(), 0
	for i, m := range chosen {
		result := b.try(m)
		outcomes[m.key()] = result
		if result.lived() {
			lived++
			if _, listed := accepted[m.key()]; !listed {
				fmt.Printf("%s\t%s\n", m.key(), result)
			}
		}
		if left := time.Since(begun) / time.Duration(i+1) * time.Duration(len(chosen)-i-1); i%20 == 19 {
			progress("%d of %d mutants, %d of them alive, about %s left", i+1, len(chosen), lived,
				left.Round(time.Second))
		}
	}
	v := judge(mutants, outcomes, accepted, len(chosen) < len(mutants))
	report(o.path, v, len(mutants), len(chosen))
	if !v.clean() {
		return fmt.Errorf("%s: %d survivors are not in %s, and %d of its lines no longer hold", o.path, len(v.unlisted),
			acceptedFile("", o.path), len(v.stale))
	}
	return nil
}

// sampled reports whether a mutant is one of the sample of one in so many.
func sampled(key string, every int) bool {
	name := fnv.New32a()
	_, _ = name.Write([]byte(key))
	return name.Sum32()%uint32(every) == 0
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

func report(path string, v verdict, all, tried int) {
	slices.Sort(v.stale)
	for _, s := range v.stale {
		fmt.Printf("no survivor any more: %s\n", s)
	}
	died := v.count[caught] + v.count[timedOut]
	fmt.Printf("%s: %d mutants, %d tried: %d caught, %d timed out, %d survived, %d not reached; %.1f%% caught\n", path,
		all, tried,
		v.count[caught], v.count[timedOut], v.count[survived], v.count[unreached],
		100*float64(died)/float64(max(1, tried)))
	fmt.Printf("of the survivors %d are listed as equivalent, %d as accepted, %d are not listed\n",
		v.reasons["equivalent"], v.reasons["accepted"], len(v.unlisted))
}
