package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// Completion is the command completion. Afterwards Complete answers the shell's requests.
type Completion struct {
	Shell string `arg:"" help:"bash, zsh or fish (default: your login shell)." enum:"bash,zsh,fish," default:""`
	Code  bool   `short:"c" hidden:"" help:"Print the script (the default)."`
}

// Help explains how to install the script.
func (c *Completion) Help() string {
	return `For this session:  source <(leasehold completion bash)
For all users:     leasehold completion bash > /etc/bash_completion.d/leasehold
                   leasehold completion zsh > /usr/share/zsh/vendor-completions/_leasehold
                   leasehold completion fish > /etc/fish/conf.d/leasehold.fish
`
}

// Run prints the script.
func (c *Completion) Run(ctx *kong.Context) error {
	script := kongcompletion.Completion{Shell: c.Shell, Code: true}
	if err := script.Run(ctx); err != nil {
		return fmt.Errorf("print the completion script: %w", err)
	}
	return nil
}
