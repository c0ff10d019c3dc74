package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// LeaseLost is what an agent does if it cannot renew its lease, before the lease can have ended
// (SAFE-9). In JSON it is one of the words, or {"run": [...]}.
type LeaseLost struct {
	Do  string   // one of the values below
	Run []string // of LeaseLostRun
}

// The values of LeaseLost.Do.
const (
	LeaseLostNone     = ""         // written as none
	LeaseLostStop     = "stop"     // the workload is stopped, until the agent is accepted again
	LeaseLostPowerOff = "poweroff" // then the machine is powered off
	LeaseLostRun      = "run"      // a command is run
)

// Fences reports whether anything is done at all.
func (l LeaseLost) Fences() bool { return l.Do != LeaseLostNone }

func (l LeaseLost) ok() bool {
	if l.Do == LeaseLostRun {
		return len(l.Run) > 0 && runOK(l.Run)
	}
	return oneOf(l.Do, LeaseLostNone, LeaseLostStop, LeaseLostPowerOff) && len(l.Run) == 0
}

// String returns how people read it.
func (l LeaseLost) String() string {
	return strings.TrimSpace(string(Encode(l)))
}

type leaseLostCommand struct {
	Run []string `json:"run"`
}

// MarshalJSON writes the word, or the command.
func (l LeaseLost) MarshalJSON() ([]byte, error) {
	switch l.Do {
	case LeaseLostRun:
		return Encode(leaseLostCommand{l.Run}), nil
	case LeaseLostNone:
		return []byte(`"none"`), nil
	default:
		return Encode(l.Do), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *LeaseLost) UnmarshalJSON(data []byte) error {
	*l = LeaseLost{}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		if err := json.Unmarshal(data, &l.Do); err != nil {
			return errors.New("on_lease_lost must be none, stop, poweroff or {run: [...]}")
		}
		if l.Do == "none" {
			l.Do = LeaseLostNone
		}
		return nil // what is no word for it is found by Validate
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var c leaseLostCommand
	if err := dec.Decode(&c); err != nil {
		return err
	}
	l.Do, l.Run = LeaseLostRun, c.Run
	return nil
}
