// Command leasehold reads and edits groups of machines, and runs the services that keep them.
//
// This package only wires up the process: terminals, environment, signals, and the store. The
// commands are in cmd/cli.
package main
