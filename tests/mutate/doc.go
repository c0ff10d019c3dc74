// Command mutate measures whether the tests of a package bite. It puts many small mistakes into the
// package, runs the package's own tests against each, and reports the mistakes that no test
// notices.
//
// All mistakes of a package are compiled into one test binary ("mutant schemata"): each place in
// the source becomes an expression that behaves as before unless the environment variable
// LEASEHOLD_MUTANT names its number. A mutant then costs one run of the tests that reach its place,
// and no compilation.
//
// # Invariants
//
//   - The source tree is never written. The changed files are handed to the compiler with -overlay.
//   - A mutant has a stable name: file, function, operator and source text, never a line number.
//   - Every survivor stands in accepted/<package>.txt with the reason why it is equivalent or
//     accepted. A survivor that is not listed fails the run, and so does a listed mutant that is
//     caught or no longer exists. The list only shrinks.
//   - Properties are checked with a fixed seed, so a mutant is caught in each run or in none.
//
// # What it does not do
//
// It does not mutate constants that are declared as such, texts for people (string literals,
// arguments of fmt and of loggers), or the capacity given to make. It runs no tests of other
// packages, unless -from names one: a package's tests must defend it alone.
package main
