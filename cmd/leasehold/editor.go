package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// edit runs the operator's editor on a file, like other tools: the first that is set of VISUAL,
// EDITOR, vi. It may be a command with arguments.
func edit(ctx context.Context, path string) error {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", editor, err)
	}
	return nil
}
