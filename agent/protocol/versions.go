package protocol

import "fmt"

// The versions of the protocol that this program speaks. A version grows only when the other end
// must know of a change in order to understand it. Unknown fields are ignored, so most changes need
// no new version. A release speaks its own version and the previous one, because during an upgrade
// or a rollback the other end may be one release older. TestVersionsSpoken enforces that, and `make
// check-protocol` compares the messages with the previous release.
//
// Versions 2 and 3 come with the same release: the previous release speaks version 1.
const (
	Newest = 3
	Oldest = 1

	// Heartbeats is the first version in which an agent sends heartbeats between reports.
	Heartbeats = 2
	// ManagedFiles is the first version in which an agent writes files.
	ManagedFiles = 3
)

// Versions is the range of versions that one side speaks.
type Versions struct{ Newest, Oldest uint32 }

// SupportedVersions returns the versions that this program speaks.
func SupportedVersions() Versions { return Versions{Newest, Oldest} }

// VersionsOf returns the versions that the other end announced. Without a newest version it speaks
// only one, as release 0.1 did.
func VersionsOf(oldest, newest uint32) Versions {
	return Versions{Newest: max(oldest, newest), Oldest: oldest}
}

// Common returns the newest version that both sides speak; ok is false if there is none.
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
