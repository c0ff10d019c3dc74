// Package download hands the agent program to new machines, so that they need no image of ours
// (PROV-7).
//
//	agents.go  the programs of a directory, by architecture, with their hashes and signed statements
//	server.go  HTTPS: GET /agent/linux-amd64
//
// A machine believes the server by the shard's authority and the program by its hash, which stand
// in what its provider handed to it. The program is no secret: anyone who reaches the address may
// read it, and nothing else.
//
// # Invariants
//
//   - A program is served with the bytes that were hashed: they are read once, and a file that
//     changes later is served only after a restart.
//   - Transfers are bounded in number and time. A client beyond them gets the time at which
//     to retry.
package download
