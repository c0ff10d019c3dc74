// Package groupfile reads and writes groups as operators write them, in YAML.
//
// # Invariants
//
//   - Whatever is wrong in a file is reported at its line and column, everything at once, in the order of the file.
//   - A field that is not in store.Fields is an error: unknown, with the nearest known one, or planned, if store.Planned
//     has it. Nothing is ignored.
//   - No value is taken for another type: 8080 is no text, "8080" no number.
//   - Input is bounded, and aliases are refused, so that no small file becomes a large one.
//   - What it returns passed store.Group.Validate and has every default written out.
//
// # What it does not do
//
// It knows no etcd and no present state of a group; which groups are static its caller says. What
// store.OperatorState holds is no part of a file: commands set it.
package groupfile
