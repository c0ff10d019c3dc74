package agentcmd

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// Parse reads the agent's flags, and what is set of them in the environment, for a program whose
// command line is not its own.
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
