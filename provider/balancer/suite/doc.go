// Package suite plays the contract of package balancer against any balancer: it proves its
// sentences, one promise each, with backends of its own and clients that count every failure. It is
// no test of Go's, so that a program can run it.
//
// A promise is proved, has failed, or is not proved: because the balancer says that it cannot keep
// it, or because nothing here can bring about what it is about. What is not proved in part is not
// proved.
package suite
