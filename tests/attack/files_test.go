package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are malicious files that an operator applies. The command must report what is wrong, within
// bounds, and change nothing.
func files(t *testing.T, s *siege) {
	bomb := "checks:\n- &a [x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i <= 'j'; i++ {
		bomb += fmt.Sprintf("- &%c [%s]\n", i, strings.TrimSuffix(strings.Repeat("*"+string(i-1)+", ", 9), ", "))
	}
	group := func(more string) string { return "name: bad\nsize: 1\nprovider: swarm\n" + more }
	for _, try := range []struct{ name, text, says string }{
		{"a billion laughs", group("vars: {a: b}\n") + bomb, ""},
		{"merged into itself", "a: &a\n  <<: *a\nname: bad\n", ""},
		{"as deep as it is long", group("vars: " + strings.Repeat("{a: ", 100_000)), ""},
		{"larger than any group", group("vars: {a: \"" + strings.Repeat("x", 8<<20) + "\"}\n"), ""},
		{"a name that is a path", "name: ../../default/shard\nsize: 1\nprovider: swarm\n", "name"},
		{"a name that is another key", "name: web/0\nsize: 1\nprovider: swarm\n", "name"},
		{"a variable that is none", group("vars: {\"a=b\\nPATH\": x}\n"), "vars"},
		{"zeros", "name: bad\x00\nsize: 1\n", ""},
		{"no text", "\xff\xfe\x00\x01", ""},
		{"a size without end", "name: bad\nsize: 99999999999999999999\nprovider: swarm\n", "size"},
	} {
		s.within(t, try.name, func(t *testing.T) {
			before := s.calm()
			file := filepath.Join(t.TempDir(), "bad.yaml")
			if err := os.WriteFile(file, []byte(try.text), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := s.Try("group", "apply", "-f", file)
			if err == nil {
				t.Fatalf("it was applied: %s", said)
			}
			if !strings.Contains(said, "error:") || !strings.Contains(said, try.says) ||
				strings.Contains(said, "panic") {
				t.Errorf("the operator is told: %.500s", said)
			}
			if len(said) > 10_000 {
				t.Errorf("the operator is told %d bytes", len(said))
			}
			t.Logf("%.200s", said)
			if now := s.Mark().Revision; len(s.Instances("bad")) > 0 {
				t.Errorf("there is a group of it at revision %d", now)
			}
			s.untouched(t, before)
		})
	}
}
