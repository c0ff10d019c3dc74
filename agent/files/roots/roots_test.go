package roots

import "testing"

// proves FILE-1
func TestFind(t *testing.T) {
	dirs := []string{"/etc/files", "/srv", "/srv/deeper"}
	for path, want := range map[string][2]string{
		"/etc/files/a":     {"/etc/files", "a"},
		"/etc/files/..a":   {"/etc/files", "..a"},
		"/srv/deeper/a/b":  {"/srv", "deeper/a/b"},
		"/srv/deeper":      {"/srv", "deeper"},
		"/etc/files":       {},
		"/etc/files-2/a":   {},
		"/etc/files/../a":  {},
		"/etc/files//a":    {},
		"/etc/files/a/":    {},
		"etc/files/a":      {},
		"":                 {},
		"/":                {},
		"/opt/etc/files/a": {},
	} {
		root, name, inside := Find(path, dirs)
		if root != want[0] || name != want[1] || inside != (want[0] != "") {
			t.Errorf("%q is %q in %q, %t", path, name, root, inside)
		}
	}
	if _, name, inside := Find("/a", []string{"/"}); !inside || name != "a" {
		t.Errorf("/a is %q, %t below /", name, inside)
	}
	if _, _, inside := Find("/a", nil); inside {
		t.Error("/a is below no directory")
	}
}
