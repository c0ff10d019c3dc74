// Package haproxytest runs real HAProxy processes for tests, each in a directory of its own, with ports
// that nobody else has. A [Relay] stands before a runtime socket and has it fail.
package haproxytest
