// Package groupdiff says in which fields two specs of a group differ.
//
// It compares the records as stored, so that every field takes part, those of later versions
// included. Lists are compared item by item, maps key by key. The order is that of store.Fields.
//
// It does not say what follows from a difference: coordinator/plan does.
package groupdiff
