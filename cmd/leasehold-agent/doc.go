// Leasehold-agent is the agent on its own: a small static binary without etcd and providers.
package main
