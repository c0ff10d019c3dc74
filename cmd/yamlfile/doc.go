// Package yamlfile reads YAML that operators write: groups, static groups and scenarios.
//
// # Invariants
//
//   - Every problem is reported at its line and column, all at once, in the order of the file.
//   - Input is bounded before it is interpreted. Aliases and merge keys are refused, so a small
//     file never becomes a large one.
//
// The package parses documents and checks keys. What a field means, packages groupfile and scenario
// know.
package yamlfile
