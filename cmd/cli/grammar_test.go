package cli

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command and every flag of the grammar is on the reference page, and has a help text.
func TestEveryCommandIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := newWorld(t)
	parser, err := newParser(&Grammar{}, w.env(&out, &out), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Leaves(true) {
		name := strings.SplitN(node.Path(), " <", 2)[0]
		if !strings.Contains(string(page), "`leasehold "+commandOf(node)) {
			t.Errorf("docs/cli.md has no line for %s", name)
		}
		if node.Help == "" {
			t.Errorf("%s has no help", name)
		}
		for _, f := range node.Flags {
			if f.Help == "" {
				t.Errorf("%s --%s has no help", name, f.Name)
			}
		}
	}
	for _, f := range parser.Model.Flags {
		if f.Name != "help" && !strings.Contains(string(page), "`--"+f.Name+"`") {
			t.Errorf("docs/cli.md has no line for --%s", f.Name)
		}
	}
}

// The page has every exit code, and no other.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| Code | Meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for row := range strings.Lines(table) {
		got = append(got, strings.Fields(row)[1])
	}
	var want []string
	for _, code := range []Code{
		Done, Failed, Usage, NotFound, Conflict, Unreachable, Differs, TimedOut, Awaits, Interrupted,
	} {
		want = append(want, strconv.Itoa(int(code)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/cli.md has the exit codes %v, and there are %v", got, want)
	}
}

func commandOf(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}

func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"leasehold gr":              "group",
		"leasehold group s":         "scale\nshow",
		"leasehold events list --f": "--follow",
	} {
		t.Setenv("COMP_LINE", line)
		var out bytes.Buffer
		w := newWorld(t)
		answered, err := Complete(w.env(&out, &out))
		if err != nil || !answered {
			t.Errorf("%q: %v, %v", line, answered, err)
		}
		for _, word := range strings.Split(want, "\n") {
			if !strings.Contains(out.String(), word) {
				t.Errorf("%q: %q has no %s", line, out.String(), word)
			}
		}
	}
	if err := os.Unsetenv("COMP_LINE"); err != nil {
		t.Fatal(err)
	}
	if answered, err := Complete(newWorld(t).env(&bytes.Buffer{}, &bytes.Buffer{})); answered || err != nil {
		t.Errorf("answered without a question: %v, %v", answered, err)
	}
}

// The shell code calls this program by its own name, for each shell.
func TestCompletionCode(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, stdout, stderr := newWorld(t).run("completion", shell)
		if code != Done || !strings.Contains(stdout, "complet") || strings.Contains(stdout, "Execute") || stderr != "" {
			t.Errorf("%s: exit %d: %s%s", shell, code, stdout, stderr)
		}
		if _, older, _ := newWorld(t).run("completion", "-c", shell); older != stdout {
			t.Errorf("%s: with -c: %s", shell, older)
		}
	}
	if code, _, _ := newWorld(t).run("completion", "tcsh"); code != Usage {
		t.Errorf("tcsh: exit %d", code)
	}
}

// What people try first.
func TestHelpAndVersion(t *testing.T) {
	for args, want := range map[string]string{
		"--version": "leasehold v0", "version": "leasehold v0", "help": "Usage: leasehold <command>",
		"help group apply": "Usage: leasehold group apply", "group apply --help": "Usage: leasehold group apply",
	} {
		code, stdout, stderr := newWorld(t).run(strings.Fields(args)...)
		if code != Done || !strings.HasPrefix(stdout, want) || stderr != "" {
			t.Errorf("%s: exit %d: %s%s", args, code, stdout, stderr)
		}
	}
}

// The environment is used where no flag is given.
func TestFlagsGoBeforeTheEnvironment(t *testing.T) {
	t.Setenv("LEASEHOLD_SHARD", "other")
	w := newWorld(t)
	if _, stdout, _ := w.run("status"); !strings.HasPrefix(stdout, "other  ") {
		t.Errorf("got %s", stdout)
	}
	if _, stdout, _ := w.run("status", "--shard", "default"); !strings.HasPrefix(stdout, "default  ") {
		t.Errorf("got %s", stdout)
	}
}
