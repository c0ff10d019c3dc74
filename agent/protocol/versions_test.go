package protocol

import "testing"

func TestBothSidesSpeakTheNewestVersionThatBothKnow(t *testing.T) {
	for _, c := range []struct {
		us, them Versions
		want     uint32 // 0: none
	}{
		{Versions{1, 1}, VersionsOf(1, 0), 1},
		{Versions{2, 1}, VersionsOf(1, 0), 1},
		{Versions{2, 1}, VersionsOf(1, 2), 2},
		{Versions{2, 1}, VersionsOf(2, 3), 2},
		{Versions{2, 1}, VersionsOf(2, 1), 2}, // a newest version below the oldest
		{Versions{3, 2}, VersionsOf(1, 0), 0},
		{Versions{2, 1}, VersionsOf(3, 4), 0},
		{Versions{1, 1}, VersionsOf(2, 0), 0},
	} {
		got, ok := c.us.Common(c.them)
		if ok != (c.want != 0) || ok && got != c.want {
			t.Errorf("we speak %s, they %s: agreed on %d, %t; want %d", c.us, c.them, got, ok, c.want)
		}
		if back, same := c.them.Common(c.us); back != got || same != ok {
			t.Errorf("we speak %s, they %s: they come to %d, %t and we to %d, %t", c.us, c.them, back, same, got, ok)
		}
	}
}

// Upgrades go one release at a time and can be taken back: each release speaks its own version and
// the previous one.
func TestVersionsSpoken(t *testing.T) {
	if Oldest < 1 || Oldest > Newest || Newest > 1 && Newest-Oldest < 1 {
		t.Errorf("this program speaks %s", SupportedVersions())
	}
}
