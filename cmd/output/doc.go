// Package output writes what a command found: as a table for people, as tab-separated lines for the
// next program in a pipe, or as the records themselves in JSON or YAML.
//
// # Invariants
//
//   - Nothing is truncated, coloured or ruled when the receiver is no terminal.
//   - JSON and YAML are one document, and hold the records as they are stored: field for field, in the stored order.
//   - A value in a table never holds a tab or a line break, so that a line stays a row.
//   - Colour never says anything that the text does not.
//
// # What it does not do
//
// It reads nothing and knows nothing of etcd, groups or instances.
package output
