package cli

import "strings"

// Bench is the command bench, which was here before leasehold-bench had a program of its own.
type Bench struct {
	Args []string `arg:"" optional:""`
}

// Run names the program that has the benches.
func (c *Bench) Run() error {
	return failure(Usage, strings.Join(append([]string{"leasehold-bench"}, c.Args...), " "),
		"bench: benches are in leasehold-bench, a program of its own")
}
