// Package disk makes small disks that go wrong.
//
//	tmpfs.go   one in memory, which can be full, and read-only
//	ext4.go    one in a file, which can stand still, or be slow
//	guard.go   who gives them back, even if we are killed
//
// Both take root, and say so. A disk hurts nobody but those who keep something on it: nothing else
// of the machine is changed.
package disk
