// Package encryption encrypts the values of secrets, and reads them again (SEC-6): AES-256-GCM with
// the keys of a [Ring].
//
// # Invariants
//
//   - The first key of a ring encrypts, all of them decrypt. So a new key can be made known
//     everywhere before anything needs it.
//   - What is encrypted is bound to its shard, name, version and key. Put into another's place it
//     is refused.
//   - Keys never show: whatever prints a [Key] or a [Ring] prints names.
//   - A key may encrypt some thousand million values before random nonces are likely to repeat;
//     rotate long before that.
//
// # What it does not do
//
// It reads no files (coordinator/keyfile) and keeps nothing. It cannot know that a whole record was
// put back as it was at an earlier time, nor hide how long a value is.
package encryption
