package parts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Ready is a part's first line: that it serves, or why it does not.
type Ready struct {
	Address string `json:"address,omitempty"` // address
	Failed  string `json:"failed,omitempty"`
}

// Serve runs the child's side: the part, until the parent closes in or ctx ends. The part calls
// ready once it serves.
func Serve(ctx context.Context, in io.Reader, out io.Writer,
	run func(ctx context.Context, ready func(Ready) error) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process, soon after this
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	served := false
	say := func(r Ready) error {
		line, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("say that the part is ready: %w", err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("say that the part is ready: %w", err)
		}
		served = true
		return nil
	}
	err := run(ctx, say)
	if err != nil && !served {
		return say(Ready{Failed: err.Error()})
	}
	return err
}
