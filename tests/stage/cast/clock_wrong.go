//go:build wrongclock

package main

import (
	"sync/atomic"
	_ "unsafe" // for linkname
)

// The wall clock of this build can be wrong. Go's runtime asks the kernel for the time through a
// pointer to a function of the kernel's, and this build puts a function of its own there, in
// assembly, which adds wallOffset. The monotonic clock stays right, as it does when an
// administrator or NTP sets a clock. Nothing of the standard library is changed for it: then all
// that the cast links would be compiled once more, for minutes.

//go:linkname vdsoClockgettimeSym runtime.vdsoClockgettimeSym
var vdsoClockgettimeSym uintptr

// wrongClock is the address of the function. Its assembly says so.
var wrongClock uintptr

// wallOffset is in seconds.
var wallOffset int64

func setClock(seconds int64) error {
	atomic.StoreInt64(&wallOffset, seconds)
	atomic.StoreUintptr(&vdsoClockgettimeSym, wrongClock)
	return nil
}
