// Package measure holds what benches measure with: durations, the resource usage of processes, and
// servers' metrics.
//
// # Invariants
//
//   - A [Histogram] has a fixed size whatever is added to it. Every duration is exact to 2 %, its
//     maximum completely.
//   - CPU and memory are read from the kernel's accounting, from outside the measured process.
//
// # What it does not do
//
// It starts no process and decides nothing.
package measure
