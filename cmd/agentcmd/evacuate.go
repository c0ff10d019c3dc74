package agentcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leasehold/leasehold/agent/notice"
	"github.com/leasehold/leasehold/provider"
)

// Evacuate is the command by which whoever runs a machine wants it emptied (DRAIN-3). It writes a file that the machine's agent looks at,
// so it works whether the agent runs now or not, and an agent that is started again still knows.
type Evacuate struct {
	Bootstrap string `help:"The bootstrap document of the agent." env:"LEASEHOLD_BOOTSTRAP" placeholder:"FILE"`
	StateDir  string `help:"Where the agent keeps its state. Default: the directory of the bootstrap document." env:"LEASEHOLD_STATE_DIR" placeholder:"DIR"`
	Why       string `arg:"" optional:"" help:"The reason, for people."`
}

func evacuationFile(stateDir string) string { return filepath.Join(stateDir, "evacuate") }

// Run writes the file.
func (c *Evacuate) Run() error {
	if c.StateDir == "" && c.Bootstrap == "" {
		return fmt.Errorf("which agent is meant is not known: name its --state-dir or its --bootstrap document, or set %s", provider.EnvBootstrap)
	}
	dir, err := stateDir(c.StateDir, c.Bootstrap)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "agent.json")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is no state directory: no agent has ever run with it", dir)
	}
	data, err := json.Marshal(map[string]string{"kind": notice.Evacuating, "why": c.Why})
	if err != nil {
		return err
	}
	path := evacuationFile(dir)
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o640); err != nil {
		return fmt.Errorf("ask for the evacuation: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("ask for the evacuation: %w", err)
	}
	return nil
}
