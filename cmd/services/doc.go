// Package services contains the commands that run until they are stopped: dev, coordinator and
// agent. It wires the parts together, and is, with cmd/leasehold, the only place that chooses
// adapters.
//
// # Invariants
//
//   - What a command started is gone when its Run returns, whatever ended it.
//   - A port, a directory or an etcd that cannot be had is one line of error with the next step.
//
// # What it does not do
//
// It reads no terminal and knows no other commands: what it needs from its process is in Host.
package services
