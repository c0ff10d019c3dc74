// Package suite plays the contract of package balancer against any balancer: one case per promise,
// with backends of its own and clients that count every failure. It does not need package testing,
// so that a command can run it.
//
// A promise is proved, has failed, or is not proved: because the balancer does not have the
// capability, or because the harness cannot cause the situation. A promise that is proved in part
// counts as not proved.
package suite
