// Package suite plays the provider's contract against a provider, promise by promise (PROV-1), for
// the command leasehold provider test and for the tests of each provider.
//
// A promise is proved, has failed, or is not proved: because the provider does not have the
// capability, or because the harness cannot cause the situation. A promise that is proved in part
// counts as not proved.
package suite
