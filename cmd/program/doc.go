// Package program has what the programs of an operator share, leasehold and leasehold-bench: exit
// codes, how an error is shown, how etcd is reached, and what a process knows of its terminal and
// of the signals that end it.
package program
