// Package filetemplate checks and renders the templates of a group's files (FILE-1). A template is
// one of Go's text/template over .Vars, .Facts and .Peers.
//
// # Invariants
//
//   - Whatever a template says, rendering it ends soon and takes little memory: steps and bytes are
//     counted, and only functions are allowed whose results are not much larger than what they are
//     given.
//   - Nothing reaches outside of the data.
//   - A name that does not exist is an error, also in a branch that is not taken.
//   - An error has a line and a column of the template.
//
// # What it does not do
//
// It does not know where the data comes from: package gateway does.
package filetemplate
