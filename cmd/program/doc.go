// Package program holds what the operator's programs, leasehold and leasehold-bench, share: exit
// codes, the form of errors, the connection to etcd, terminals and signals.
package program
