// Package haproxytest runs real HAProxy processes for tests, each in a directory of its own, with
// free ports. A [Relay] stands before a runtime socket and has it fail.
package haproxytest
