// Package disk makes small disks that go wrong.
//
//	tmpfs.go   a disk in memory, which can be full or read-only
//	ext4.go    a disk in a file, which can freeze or be slow
//	guard.go   the process that removes them, even if the test is killed
//
// Both require root, and say so. They affect only processes that use them: nothing else of the
// machine is changed.
package disk
