package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/cmd/services"
	"golang.org/x/term"
)

// secretsKeyVariable is the variable that may hold the keys for secrets.
const secretsKeyVariable = "LEASEHOLD_SECRETS_KEY"

// secretsKey removes the keys from the environment, so that no child process inherits them.
func secretsKey() string {
	keys := os.Getenv(secretsKeyVariable)
	_ = os.Unsetenv(secretsKeyVariable) // only an invalid name could fail
	return keys
}

// devData is the data directory of leasehold dev; "" without a home directory.
func devData() string {
	dir, err := services.DevDataDir()
	if err != nil {
		return ""
	}
	return dir
}

// askSecret reads a line from the terminal without echo. It always turns echo on again.
func askSecret(ctx context.Context, prompt string) ([]byte, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("ask at the terminal: %w", err)
	}
	fmt.Fprint(os.Stderr, prompt)
	type answer struct {
		value []byte
		err   error
	}
	typed := make(chan answer, 1)
	go func() { // outlives this call only if ctx ends before input: a terminal read cannot be canceled
		value, err := term.ReadPassword(fd)
		typed <- answer{value, err}
	}()
	defer fmt.Fprintln(os.Stderr)
	select {
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), term.Restore(fd, before))
	case a := <-typed:
		return a.value, a.err
	}
}
