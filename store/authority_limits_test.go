package store

import "testing"

func TestWhatAnAuthorityForbids(t *testing.T) {
	l := AuthorityLimits{Domains: []string{"web.internal"}, Networks: []string{"10.0.0.0/8"}}
	for name, want := range map[string]bool{
		"web.internal": false, "a.web.internal": false, "aweb.internal": true, "internal": true,
		"db.internal": true, "10.1.2.3": false, "192.0.2.1": true,
		"{{.Instance}}.web.internal": false, "{{.Instance}}.internal": false, "{{.Instance}}eb.internal": false,
		"{{.Instance}}": false, "10.0.0.{{.Slot}}": false, "{{.Slot}}.2.1": false,
		"{{.Instance}}.example.com": true, "{{.Instance}}.com": true, "{{.Instance}}x.db.internal": true,
	} {
		if l.Forbids(name) != want {
			t.Errorf("%s is forbidden: %t", name, !want)
		}
	}
}
