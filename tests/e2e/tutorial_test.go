package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// step is a command of a page, and what the page says that it prints.
type step struct {
	host    string // before the prompt; "" where a page has only one
	command string
	prints  []string
}

// stepsOf returns the commands in the blocks of a page that are marked as console.
func stepsOf(t *testing.T, page string) []step {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return stepsIn(t, page, string(text))
}

// stepsIn is stepsOf for a part of a page.
func stepsIn(t *testing.T, page, text string) []step {
	t.Helper()
	var steps []step
	for _, block := range strings.Split(text, "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		document := false
		for line := range strings.Lines(block) {
			line = strings.TrimRight(line, "\n")
			host, command, isCommand := strings.Cut(line, "$ ")
			isCommand = isCommand && len(host) <= 1
			switch {
			case document:
				steps[len(steps)-1].command += "\n" + line
				document = line != "END"
			case isCommand:
				steps = append(steps, step{host: host, command: command})
				document = strings.Contains(command, "<<'END'")
			case len(steps) == 0:
				t.Fatalf("%s: output before the first command: %s", page, line)
			default:
				steps[len(steps)-1].prints = append(steps[len(steps)-1].prints, line)
			}
		}
	}
	return steps
}

var (
	// reads is a command that changes nothing: it is repeated until it prints what the page says,
	// since the page leaves a reader some seconds.
	reads = regexp.MustCompile(`^leasehold (status|explain|instance list|group history)\b`)

	instanceName = regexp.MustCompile(`\bweb-\d-[a-z0-9]{6}\b`)
	varying      = []struct {
		pattern *regexp.Regexp
		as      string
	}{
		{regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]`), ""},
		{instanceName, "web-ID"},
		{regexp.MustCompile(`\bt[0-9a-f]{8}\b`), "TEMPLATE"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?`), "TIME"},
		{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(ms|h|m|s))+\b`), "DURATION"},
		{regexp.MustCompile(`\brev \d+\b`), "rev N"},
		{regexp.MustCompile(`^ *\d+ +TIME`), "N TIME"},
		{regexp.MustCompile(`[ \r]+`), " "},
	}
)

// constant returns a line without what differs from run to run.
func constant(line string) string {
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.as)
	}
	return strings.TrimSpace(line)
}

// missing returns the lines of a page that a command did not print.
func missing(page []string, printed string) []string {
	var lines []string
	for line := range strings.Lines(printed) {
		if i := strings.LastIndex(line, "\x1b[K"); i >= 0 { // progress that is erased
			line = line[i:]
		}
		lines = append(lines, constant(line))
	}
	all := "\n" + strings.Join(lines, "\n") + "\n"
	var out []string
	for _, line := range page {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(constant(line)), "…", ".*")
		if !regexp.MustCompile(`\n` + pattern + `\n`).MatchString(all) {
			out = append(out, line)
		}
	}
	return out
}

// Every command of the tutorial succeeds, and prints what the tutorial says.
func TestTutorial(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	l.startDev("--listen", l.address(), "--http", l.address())
	l.follow()
	state := filepath.Join(l.dir, ".local", "state", "leasehold")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(l.data, filepath.Join(state, "dev")); err != nil { // where the page says that it is
		t.Fatal(err)
	}
	l.reader("web").carryOut(stepsOf(t, filepath.Join("..", "..", "docs", "tutorial.md")))
}

// reader types the commands of a page.
type reader struct {
	*laptop
	group string
	named map[string]string // the page's names of the group's instances, as they are here
}

func (l *laptop) reader(group string) *reader { return &reader{l, group, map[string]string{}} }

// run runs a command in a terminal, since output is a table only there. Nothing is typed.
func (r *reader) run(command string) (string, error) {
	cmd := r.command("script", "-qec", "stty cols 80; "+command, "/dev/null")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(bin("leasehold"))+":"+os.Getenv("PATH"), "NO_COLOR=1",
		"SHELL=/bin/bash")
	if r.dev == nil { // there is no shard yet, and nothing that names one
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return v == r.settings })
	}
	out, err := cmd.Output()
	return string(out), err
}

// here is a command with the names that instances have here.
func (r *reader) here(command string) string {
	return instanceName.ReplaceAllStringFunc(command, func(name string) string {
		if r.named[name] == "" {
			for _, id := range r.h.wanted(r.group) {
				if strings.HasPrefix(id, name[:len("web-0-")]) {
					r.named[name] = id
				}
			}
		}
		return r.named[name]
	})
}

// carryOut runs commands in their order, and compares what they print with what the page says.
func (r *reader) carryOut(steps []step) {
	r.t.Helper()
	for _, s := range steps {
		command := r.here(s.command)
		var printed string
		var lacks []string
		try := func() bool {
			var err error
			if printed, err = r.run(command); err != nil {
				lacks = []string{printed + describe(err)}
			} else {
				lacks = missing(s.prints, printed)
			}
			return len(lacks) == 0
		}
		if reads.MatchString(command) {
			r.await("what the page says of "+command, try)
		} else if !try() {
			r.t.Fatalf("$ %s\n%s\nlacks:\n%s", command, printed, strings.Join(lacks, "\n"))
		}
		r.t.Logf("$ %s", command)
	}
}

func describe(err error) string {
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns no other
		return fmt.Sprintf("exit status %d %s", exit.ExitCode(), exit.Stderr)
	}
	return err.Error()
}
