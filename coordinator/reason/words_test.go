package reason

import (
	"os/exec"
	"testing"
)

// A shell reads a quoted word as it was.
//
// proves WEB-1
func TestAShellReadsQuotedWordsAsTheyWere(t *testing.T) {
	for _, word := range []string{
		"", "web", "web-1.yaml", "/etc/a b", "it's", "$(reboot)", "`reboot`", "a;b", "~", "*", "{a,b}", "a\nb", "a\rb",
		"#", "!!", `\`, `"`, "größe", "--x=1", "git@host:a/b+c",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+ShellWord(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is quoted %s: %q, %v", word, ShellWord(word), out, err)
		}
	}
	if got := ShellWord("web-1.yaml"); got != "web-1.yaml" {
		t.Errorf("a plain word is quoted: %s", got)
	}
}
