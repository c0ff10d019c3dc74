package cli

import (
	kongcompletion "github.com/jotaen/kong-completion"
)

// Completion is the command completion. Complete answers what the shell then asks.
type Completion struct {
	kongcompletion.Completion
}
