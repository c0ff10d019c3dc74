package cli

import "strings"

// Bench is the command bench, which only refers to leasehold-bench.
type Bench struct {
	Args []string `arg:"" optional:""`
}

// Run names the program that contains the benches.
func (c *Bench) Run() error {
	return failure(Usage, strings.Join(append([]string{"leasehold-bench"}, c.Args...), " "),
		"bench: benches are in leasehold-bench, a program of its own")
}
