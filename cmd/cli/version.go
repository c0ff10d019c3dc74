package cli

import "fmt"

// Version is the command version.
type Version struct{}

// Run shows the version.
func (c *Version) Run(inv *Invocation) error {
	if done, err := inv.records(map[string]string{"version": inv.env.Version}); done {
		return err
	}
	_, err := fmt.Fprintln(inv.env.Stdout, "leasehold", inv.env.Version)
	return err
}
