package agentcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/durable"
)

// Evacuate is the command that evacuates a machine on request of its host's operator (DRAIN-3). It
// writes a file that the machine's agent watches, so it works whether or not the agent is running,
// and survives a restart of the agent. The file names the instance: if the machine becomes another
// one, that is not evacuated.
type Evacuate struct {
	Bootstrap string `help:"Bootstrap document of the agent." env:"LEASEHOLD_BOOTSTRAP" placeholder:"FILE"`
	StateDir  string `help:"Directory of the agent's state (default: the directory of the bootstrap document)." env:"LEASEHOLD_STATE_DIR" placeholder:"DIR"`
	Why       string `arg:"" optional:"" help:"The reason, shown in the journal."`
}

func evacuationFile(stateDir string) string { return filepath.Join(stateDir, "evacuate") }

// Run writes the file, and prints what will follow, since for a while nothing on this machine shows
// it.
func (c *Evacuate) Run(out io.Writer) error {
	if c.StateDir == "" && c.Bootstrap == "" {
		return fmt.Errorf("cannot find the agent to evacuate: give its --state-dir or its --bootstrap document, or set %s",
			provider.EnvBootstrap)
	}
	dir, err := stateDir(c.StateDir, c.Bootstrap)
	if err != nil {
		return err
	}
	memory, err := os.ReadFile(filepath.Join(dir, "agent.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is no state directory: no agent has ever run with it, or its machine was removed", dir)
	}
	var agent struct{ Instance string }
	if err != nil {
		return fmt.Errorf("read the instance ID: %w", err)
	}
	if err := json.Unmarshal(memory, &agent); err != nil {
		return fmt.Errorf("read the instance ID: %w", err)
	}
	data, err := json.Marshal(map[string]string{
		"kind": notice.Evacuating, "why": c.Why, "instance": agent.Instance,
	})
	if err != nil {
		return err
	}
	if err := durable.Replace(evacuationFile(dir), append(data, '\n'), 0o640); err != nil {
		return fmt.Errorf("request the evacuation: %w", err)
	}
	_,
		err = fmt.Fprintf(out,
		"evacuation of %s requested: its agent reports this within seconds, or once it runs; "+
			"then the instance is replaced, drained and removed\nwatch it with: leasehold explain %s\n",
		agent.Instance, agent.Instance)
	return err
}
