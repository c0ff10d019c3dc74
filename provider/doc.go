// Package provider is the contract between Leasehold and whatever makes and removes machines.
//
// The package imports the standard library alone; adapters (provider/process, …) import it, and
// providertest holds the one suite that every adapter passes.
//
// # What a provider promises
//
//   - A machine is named by its instance ID, which is never used again. Create with an ID that
//     already has a machine makes no second one: it returns the machine that is there. That makes
//     every call safe to repeat, by any leader, after any crash (SAFE-8).
//   - Every machine carries two tags that outlive the caller: the shard's random ID and the
//     instance ID.
//   - Delete of what is gone succeeds. After Delete of an ID, a Create of it that was begun before
//     and comes late may fail with ErrDeleted; it should, where the provider can remember.
//   - List is all machines of the shard or an error, never a part.
//   - A call ends when its context ends, though what it began may still happen.
//   - Methods may be called concurrently. Calls for one ID are never made at once by one
//     coordinator, but a deposed one may still have a call under way.
//
// # What it does not do
//
// It decides nothing: no retries, no healing, no limits of its own on how often it is called
// (it says [ErrThrottled] instead).
package provider
