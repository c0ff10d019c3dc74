// Package recovery determines which slots machines belong to after their records were lost
// (SAFE-17).
//
// # Invariants
//
//   - It decides only from statements of agents and providers, never from an absence: a machine
//     that it cannot place stays as it is.
//   - An agent's statement counts only with a coordinator's seal, or if the provider's tags agree.
//   - A slot gets one machine. If two claim it, neither gets it.
//
// # What it does not do
//
// It neither reads nor writes records. The leader carries out its proposals, order by order, and
// checks each again.
package recovery
