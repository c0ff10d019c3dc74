package userdata

import (
	_ "embed"
	"encoding/json"
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

// DocumentPath is where the bootstrap document is on the machine.
const DocumentPath = "/etc/leasehold/bootstrap.json"

// Where the other files are that cloud-init writes.
const (
	caPath     = "/etc/leasehold/ca.pem"
	scriptPath = "/var/lib/leasehold/install.sh"
)

// Script is the script for a machine, with all that it needs in it.
func Script(b provider.Bootstrap, agent provider.AgentSource) (string, error) {
	document, err := b.Encode()
	if err != nil {
		return "", err
	}
	return installScript(b, agent, true, string(document))
}

// Installer is the script for a machine to which its platform brings the document by itself, as a
// file at DocumentPath. There is no secret in it.
func Installer(b provider.Bootstrap, agent provider.AgentSource) (string, error) {
	return installScript(b, agent, true, "")
}

// CloudConfig is a cloud-config that writes the document and the script as files, and runs the
// script. It is JSON, which is YAML as well. A cloud-config beside it keeps its own files and
// commands.
func CloudConfig(b provider.Bootstrap, agent provider.AgentSource) (string, error) {
	document, err := b.Encode()
	if err != nil {
		return "", err
	}
	script, err := installScript(b, agent, false, "")
	if err != nil {
		return "", err
	}
	values := map[string]any{
		"write_files": []map[string]string{
			{"path": DocumentPath, "permissions": "0600", "owner": "root:root", "content": string(document)},
			{"path": caPath, "permissions": "0644", "owner": "root:root", "content": b.CA + "\n"},
			{"path": scriptPath, "permissions": "0700", "owner": "root:root", "content": script},
		},
		"runcmd":    [][]string{{"sh", scriptPath}},
		"merge_how": "list(append)+dict(recurse_array)+str()",
	}
	if b.Name != "" && b.Name != b.Instance {
		values["hostname"] = b.Name
	}
	config, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("write cloud-config: %w", err)
	}
	return "#cloud-config\n" + string(config) + "\n", nil
}

// installScript is the script. It finds in their files what it does not write itself: the
// authority's certificate, and the document.
func installScript(b provider.Bootstrap, agent provider.AgentSource, writesCA bool, document string) (string, error) {
	type sum struct{ Arch, SHA256 string }
	var sums []sum
	for _, arch := range slices.Sorted(maps.Keys(agent.SHA256)) {
		sums = append(sums, sum{arch, agent.SHA256[arch]})
	}
	var out strings.Builder
	if err := script.Execute(&out, struct {
		Instance, Document, CA, Host, List string
		WritesCA                           bool
		Sums                               []sum
	}{b.Instance, document, b.CA, agent.Host, strings.Join(agent.Addresses, " "), writesCA, sums}); err != nil {
		return "", fmt.Errorf("write install script: %w", err)
	}
	return out.String(), nil
}

// quote makes one word of a text for the shell, whatever is in it.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
