package cli

import (
	kongcompletion "github.com/jotaen/kong-completion"
)

// Completion is the command completion. Complete answers the shell's requests afterwards.
type Completion struct {
	kongcompletion.Completion
}
