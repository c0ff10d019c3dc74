package protocol

import "fmt"

// The versions of the protocol that this program speaks. A version grows only when the other side
// must know of a change to be understood: whoever meets a field that it does not know leaves it
// alone, so most changes need no new version. A release speaks its own version and the one before,
// which is the other end's while an upgrade goes on, or is taken back; TestVersionsSpoken holds it
// to that, and `make check-protocol` compares what is said with the release before.
const (
	Newest = 1
	Oldest = 1 // Newest - 1, from version 2 on
)

// Versions are those that one side speaks.
type Versions struct{ Newest, Oldest uint32 }

// Spoken are those of this program.
func Spoken() Versions { return Versions{Newest, Oldest} }

// VersionsOf are those that somebody tells of. Who tells of no oldest speaks one version alone, as
// the first release did.
func VersionsOf(newest, oldest uint32) Versions {
	if oldest == 0 || oldest > newest {
		oldest = newest
	}
	return Versions{newest, oldest}
}

// Common is the newest version that both sides speak; ok is false if there is none.
func (v Versions) Common(o Versions) (version uint32, ok bool) {
	version = min(v.Newest, o.Newest)
	return version, version >= v.Oldest && version >= o.Oldest
}

func (v Versions) String() string {
	if v.Oldest == v.Newest {
		return fmt.Sprintf("version %d", v.Newest)
	}
	return fmt.Sprintf("versions %d to %d", v.Oldest, v.Newest)
}
