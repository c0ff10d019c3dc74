//go:build wrongclock

package main

import _ "unsafe" // for linkname

// The standard library of this build has a wall clock that can be wrong: the tests put another
// time/time.go in its place, in which time.Now adds wallOffset. The monotonic clock stays right, as
// it does when an administrator or NTP sets a clock.

//go:linkname setWallOffset time.setWallOffset
func setWallOffset(seconds int64)

func setClock(seconds int64) error {
	setWallOffset(seconds)
	return nil
}
