// Command leasehold reads and edits groups of machines, and runs the services that keep them.
//
// This package only wires: what the process has of terminals, environment and signals, and which
// store there is. The commands are in cmd/cli.
package main
