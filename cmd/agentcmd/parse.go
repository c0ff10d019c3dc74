package agentcmd

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// Parse parses the agent's flags and their environment variables, for a program with another
// command line.
func Parse(args []string) (*Cmd, error) {
	var c Cmd
	parser, err := kong.New(&c, kong.Name("agent"), kong.NoDefaultHelp())
	if err != nil {
		return nil, fmt.Errorf("read the agent's flags: %w", err)
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, fmt.Errorf("read the agent's flags: %w", err)
	}
	return &c, nil
}
