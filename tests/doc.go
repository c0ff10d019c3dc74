// Package tests holds what is proved about the project as a whole: its source keeps the rules about
// which package may import which (imports_test.go), and every promise that docs/rules.md calls kept
// has a test that proves it (rules_test.go).
//
// # Invariants
//
//   - The rules about source are read off the source itself, every file of it, whatever its build
//     tags.
//   - Each ban is proved to refuse something by a simulated file (simulated_test.go): a ban that
//     can no longer fail is itself a failure.
//
// # What it does not do
//
// It tests no package's inner workings: those tests stand beside the code.
package tests
