package scenario

import (
	_ "embed"
	"strings"
)

// DefaultText is the scenario that is played if none is given.
//
//go:embed default.yaml
var DefaultText string

// Default parses the default scenario for some groups.
func Default(setting Setting) (*Scenario, error) {
	return Read("the default scenario", strings.NewReader(DefaultText), setting)
}
