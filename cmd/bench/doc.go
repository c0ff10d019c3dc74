// Package bench is the grammar of leasehold-bench and what each of its commands does: it measures
// what a machine, an etcd or the planner carries. The packages below it do the measuring.
//
// # Invariants
//
//   - A bench uses an etcd of its own unless --endpoints names another, and a named one only if
//     that is empty or --used-etcd was given.
//   - A bench leaves nothing behind, however it ends, except the logs of a bench that failed.
//   - Standard output holds the result and nothing else. Progress and errors go to standard error.
//
// # What it does not do
//
// It reads no settings file: what an operator works with every day is no place for a bench.
package bench
