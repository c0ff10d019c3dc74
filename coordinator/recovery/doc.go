// Package recovery works out which machines belong into which slots after their records were lost
// (SAFE-17).
//
// # Invariants
//
//   - It decides from what agents and providers say, and from nothing that is absent: a machine
//     that it cannot place stays as it is.
//   - An agent's word counts only with a coordinator's seal, or where the provider's tags say the
//     same.
//   - A slot gets one machine. Where two claim it, neither gets it.
//
// # What it does not do
//
// It reads and writes nothing. The leader carries its proposals out, order by order, and checks
// each again.
package recovery
