// Package suite plays the provider's contract against a provider, promise by promise (PROV-1). The
// command leasehold provider test and the tests of each provider play the same.
//
// A promise is proved, has failed, or is not proved: because the provider says that it cannot keep
// it, or because nothing here can bring about what it is about. What is not proved in part is not
// proved.
package suite
