package cli

import "fmt"

// Version is the command version.
type Version struct{}

// Run shows the version.
func (c *Version) Run(s *Session) error {
	if done, err := s.records(map[string]string{"version": s.env.Version}); done {
		return err
	}
	_, err := fmt.Fprintln(s.env.Stdout, "leasehold", s.env.Version)
	return err
}
