// Package previous has the programs of the release before this one, so that upgrades from it and
// back to it are tried with the programs that operators have.
//
// Their source is a file of this folder, made by scripts/keep-release.sh: a run of the tests may
// have no git history. It is built outside the tree, with the modules that are in the module cache
// anyway, so the Go tools and the linters see nothing of it. A second build takes what the first
// left in Go's cache, wherever it was.
package previous
