// Package measure counts what a bench wants to know: how long things took, what processes use, and
// what servers tell of themselves.
//
// # Invariants
//
//   - A [Histogram] has a fixed size whatever is added to it, and says every duration within 2 % of the truth, its maximum exactly.
//   - CPU and memory are read from the kernel's account of a process, from outside: what is measured does not know of it.
//
// # What it does not do
//
// It starts no process and decides nothing.
package measure
