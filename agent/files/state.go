package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const stateSchema = 1

// remembered is what a later run of the agent has to know.
type remembered struct {
	Schema   int               `json:"schema"`
	Instance string            `json:"instance"` // the clone of a disk has the files of another instance
	Config   string            `json:"config"`
	Files    map[string]memory `json:"files"` // by path, as received
}

// memory is what is remembered of a file. Nothing in it is derived from the content of a secret.
type memory struct {
	Delivered bool   `json:"delivered,omitempty"`
	Version   string `json:"version,omitempty"`
	Follow    bool   `json:"follow,omitempty"` // the actions after its change have not been done yet

	Issued issued `json:"issued,omitzero"` // of a certificate
}

func readState(path, instance string) (remembered, error) {
	none := remembered{Schema: stateSchema, Instance: instance, Files: map[string]memory{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read the state of files: %w", err)
	}
	r := none
	if err := json.Unmarshal(data, &r); err != nil {
		return none, fmt.Errorf("read the state of files: %w", err)
	}
	if r.Schema > stateSchema || r.Instance != instance || r.Files == nil {
		return none, nil
	}
	return r, nil
}

func (r remembered) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write the state of files: %w", err)
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	err = replace(place{dir, base}, data, attributes{0o600, -1, -1}, func(string) error { return nil })
	if err != nil {
		return fmt.Errorf("write the state of files: %w", err)
	}
	return nil
}
