// Package groupdiff compares two specs of a group field by field.
//
// It compares the records as stored, so that every field is compared, including those of later
// versions. Lists are compared item by item, maps key by key. The order is that of store.Fields.
//
// It does not know the consequences of a difference: coordinator/plan does.
package groupdiff
