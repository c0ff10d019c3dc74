package harness

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tool builds a tool that scripts/tools pins, or finds it in Go's cache, and returns its path.
func Tool(module, name string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	cmd := exec.Command("go", "tool", "-modfile="+filepath.Join(root, "scripts", "tools", module, "go.mod"), "-n", name)
	cmd.Dir, cmd.Stderr = root, &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build the tool %s: %w: %s", name, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}
