package cli

import "github.com/leasehold/leasehold/cmd/output"

// counted is a number with its noun.
func counted(n int, one, many string) string { return output.Counted(n, one, many) }

// isAre is a number with its verb.
func isAre(n int) string { return counted(n, "is", "are") }

// instancesAre is the verb for some of all instances, after all of them.
func instancesAre(all, some int) string {
	verb := "are"
	if some == 1 {
		verb = "is"
	}
	return counted(all, "instance", "instances") + " " + verb
}
