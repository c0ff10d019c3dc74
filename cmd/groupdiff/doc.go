// Package groupdiff compares two specs of a group field by field.
//
// It compares the records as stored, so that every field is compared, including fields of later
// versions. Lists are compared item by item, maps key by key. The order is as in store.Fields.
//
// It does not know the consequences of a difference: coordinator/plan does.
package groupdiff
