// Package passport is what an agent shows and whom it believes: the machine's key, the certificate
// over it and the authorities of its shard, in one file of the agent's state directory.
//
// A key is made on the machine and never leaves it. The first certificate is had for the join token
// of the bootstrap document (SEC-2); every later one is over a new key and is asked for on the
// agent's stream, long before the present one ends (SEC-3).
//
// # Invariants
//
//   - Key, certificate and trust are one value and one file, replaced as a whole: no crash leaves halves that do not fit.
//   - A pair is written down before it is used, and the key of a join before that is asked for, so that a join whose answer was lost is
//     repeated with the same key. Only a disk that fails, or does not answer for a second, is not waited for; then it is written later, and the log says so.
//   - What does not fit the key that was asked with, this instance, or an authority to be believed changes nothing.
//   - Every connection is secured with what is in force when it is made.
//   - None of its methods waits for a disk, but for Open, Join and Run.
//
// # What it does not do
//
// It makes no connections and knows no replicas: whoever joins brings the call. It decides when to
// renew, not over which stream.
package passport
