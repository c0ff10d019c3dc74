package provider

import (
	"encoding/json"
	"fmt"
	"time"
)

// BootstrapSchema is the version of the bootstrap document.
const BootstrapSchema = 1

// Bootstrap is the one document that every provider hands to a new machine. The agent needs nothing
// else to join. Providers may add to Facts and set BootID; they change nothing else.
type Bootstrap struct {
	Schema       int      `json:"schema"`
	Instance     string   `json:"instance"`
	Group        string   `json:"group"`
	Name         string   `json:"name,omitempty"` // of the machine: its slot's, or the instance
	Slot         int      `json:"slot"`
	Zone         string   `json:"zone"`
	Shard        string   `json:"shard"` // the shard's random ID
	ShardName    string   `json:"shard_name"`
	Coordinators []string `json:"coordinators"` // host:port of the replicas known when it was made
	JoinToken    string   `json:"join_token,omitempty"`
	// when the instance was recorded, RFC 3339: it is not earlier than that, whatever the machine's
	// clock says
	Made string `json:"made,omitempty"`
	CA   string `json:"ca,omitempty"` // PEM; empty: the stream is not encrypted

	ReportInterval string            `json:"report_interval"` // until the welcome says otherwise
	ReconnectMin   string            `json:"reconnect_min"`
	ReconnectMax   string            `json:"reconnect_max"`
	Run            []string          `json:"run,omitempty"` // the workload; ${name} is expanded over Vars and Facts
	Vars           map[string]string `json:"vars,omitempty"`
	// Secrets are the names of the secrets that the workload gets, by environment variable (SEC-6).
	// Their values come with the stream alone, and the workload waits for them.
	Secrets     map[string]string `json:"secrets,omitempty"`
	Facts       map[string]string `json:"facts,omitempty"`     // from the provider: port, address …
	StopTimeout string            `json:"stop_timeout"`        // how long the workload may take to end
	Lifecycle   string            `json:"lifecycle,omitempty"` // service or task; empty: service

	OnLeaseLost    string   `json:"on_lease_lost,omitempty"` // stop, poweroff or run; empty: nothing is done (SAFE-9)
	OnLeaseLostRun []string `json:"on_lease_lost_run,omitempty"`
	// Checked: there are application checks. The replica that welcomes the agent says which; until
	// then it is not healthy.
	Checked bool `json:"checked,omitempty"`
	// Files: there are files. They come with the stream, and the workload waits for them.
	Files bool `json:"files,omitempty"`
}

// ReadBootstrap reads and checks the document.
func ReadBootstrap(data []byte) (Bootstrap, error) {
	var b Bootstrap
	if err := json.Unmarshal(data, &b); err != nil {
		return b, fmt.Errorf("read bootstrap document: %w", err)
	}
	if b.Schema > BootstrapSchema {
		return b, fmt.Errorf("read bootstrap document: schema %d is newer than this agent's %d: upgrade the agent",
			b.Schema, BootstrapSchema)
	}
	for _, f := range []struct{ name, value string }{
		{"instance", b.Instance}, {"shard", b.Shard},
	} {
		if f.value == "" {
			return b, fmt.Errorf("read bootstrap document: %s is missing", f.name)
		}
	}
	if len(b.Coordinators) == 0 {
		return b,
			fmt.Errorf("read bootstrap document: coordinators is empty: the agent would have no coordinator to connect to")
	}
	for _, f := range []struct{ name, value string }{
		{"report_interval", b.ReportInterval},
		{"reconnect_min", b.ReconnectMin},
		{"reconnect_max", b.ReconnectMax},
		{"stop_timeout", b.StopTimeout},
	} {
		if _, err := time.ParseDuration(f.value); err != nil {
			return b, fmt.Errorf("read bootstrap document: %s: %w", f.name, err)
		}
	}
	return b, nil
}

// Environment variables that a provider sets for the agent it starts, where it starts processes at
// all.
const (
	EnvBootstrap = "LEASEHOLD_BOOTSTRAP" // path of the bootstrap document
	EnvBootID    = "LEASEHOLD_BOOT_ID"   // this boot's ID, where the kernel's does not tell boots apart
	EnvMachine   = "LEASEHOLD_MACHINE"   // <shard ID>/<instance ID>: marks every process of the machine
)

// SMBIOSBootstrap begins the OEM string in a virtual machine's SMBIOS tables that has the document,
// in base64. It is systemd's form of a credential: a service in the guest can load it as one.
const SMBIOSBootstrap = "io.systemd.credential.binary:leasehold.bootstrap="

// Encode is the document as it is handed to a machine.
func (b Bootstrap) Encode() ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write bootstrap document: %w", err)
	}
	return text, nil
}
