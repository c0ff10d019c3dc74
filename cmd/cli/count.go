package cli

import "github.com/leasehold/leasehold/cmd/output"

// counted formats a number with its noun.
func counted(n int, one, many string) string { return output.Counted(n, one, many) }

// isAre formats a number with its verb.
func isAre(n int) string { return counted(n, "is", "are") }

// instancesAre returns the verb for some of all instances, which follows the total.
func instancesAre(all, some int) string {
	verb := "are"
	if some == 1 {
		verb = "is"
	}
	return counted(all, "instance", "instances") + " " + verb
}
