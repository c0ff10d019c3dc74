// Package machines finds the processes of the process provider's machines from outside: by the
// marker in their environment, and by the records in the provider's directory. Tests of whole
// programs look with it at what really runs, and kill it.
//
// It asks neither provider nor coordinator, so that it can find their errors.
package machines
