// Package output writes a command's result: as a table for people, as tab-separated lines for the
// next program in a pipe, or as the records themselves in JSON or YAML.
//
// # Invariants
//
//   - Without a terminal nothing is truncated or coloured.
//   - JSON and YAML are one document, and hold the records as they are stored: field for field, in
//     the stored order.
//   - A value in a table never holds a tab or a line break, so that a line stays a row.
//   - Colour never says anything that the text does not.
//
// # What it does not do
//
// It reads nothing and knows nothing about etcd, groups or instances.
package output
