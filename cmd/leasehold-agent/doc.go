// Leasehold-agent is the agent on its own: a small static binary with neither etcd nor providers in
// it.
package main
