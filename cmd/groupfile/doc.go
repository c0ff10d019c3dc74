// Package groupfile reads and writes groups as operators write them, in YAML.
//
// # Invariants
//
//   - Every problem of a file is reported at its line and column, all at once, in the order of the
//     file.
//   - A field that is not in store.Fields is an error: unknown, with the nearest known one, or
//     planned, if store.Planned has it. Nothing is ignored.
//   - No value is converted: 8080 is not text, "8080" not a number.
//   - Input is bounded, and aliases are refused, so that no small file becomes a large one.
//   - What it returns passed store.Group.Validate and contains every default.
//
// # What it does not do
//
// It does not know etcd or the present state of a group; the caller says which groups are static.
// The fields of store.OperatorState are not part of a file: commands set them.
package groupfile
