package userdata

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/leasehold/leasehold/provider"
)

//go:embed install.sh
var install string

var script = template.Must(template.New("install.sh").Funcs(template.FuncMap{"quote": quote}).Parse(install))

// Script is the script for a machine.
func Script(b provider.Bootstrap, agent provider.AgentSource) (string, error) {
	document, err := b.Encode()
	if err != nil {
		return "", err
	}
	type sum struct{ Arch, SHA256 string }
	var sums []sum
	for _, arch := range slices.Sorted(maps.Keys(agent.SHA256)) {
		sums = append(sums, sum{arch, agent.SHA256[arch]})
	}
	var out strings.Builder
	if err := script.Execute(&out, struct {
		Instance, Document, CA, Host, List string
		Sums                               []sum
	}{b.Instance, string(document), b.CA, agent.Host, strings.Join(agent.Addresses, " "), sums}); err != nil {
		return "", fmt.Errorf("write install script: %w", err)
	}
	return out.String(), nil
}

// quote makes one word of a text for the shell, whatever is in it.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
