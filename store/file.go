package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store/filetemplate"
)

// File is a file that the agents of a group's instances write (FILE-1). Exactly one of Text,
// Template, Secret and Certificate is set. ${name} stands for a variable or a fact of the machine
// in paths and in the command.
type File struct {
	Path        string           `json:"path"`
	Text        *string          `json:"text,omitempty"`
	Template    string           `json:"template,omitempty"` // see package filetemplate
	Secret      string           `json:"secret,omitempty"`   // name of the secret whose value is the content
	Certificate *FileCertificate `json:"certificate,omitempty"`
	Owner       string           `json:"owner,omitempty"` // user, or user:group; empty: the agent's
	Mode        string           `json:"mode"`            // octal
	OnChange    FileChange       `json:"on_change"`
	Settle      Duration         `json:"settle,omitempty"` // of a template: how long changes of peers are gathered
}

// FileChange is what an agent does after it has written a file. In JSON it is one of the words, or
// {"run": [...]}.
type FileChange struct {
	Do  string   // one of the values below
	Run []string // of FileRun
}

// The values of FileChange.Do.
const (
	FileNone    = ""        // written as none
	FileReload  = "reload"  // the workload gets SIGHUP
	FileRestart = "restart" // a change of the group's spec restarts the workload, by a roll
	FileRun     = "run"     // a command is run
)

func (c FileChange) ok() bool {
	if c.Do == FileRun {
		return len(c.Run) > 0 && runOK(c.Run)
	}
	return oneOf(c.Do, FileNone, FileReload, FileRestart) && len(c.Run) == 0
}

// String returns how people read it.
func (c FileChange) String() string { return strings.TrimSpace(string(Encode(c))) }

type fileCommand struct {
	Run []string `json:"run"`
}

// MarshalJSON writes the word, or the command.
func (c FileChange) MarshalJSON() ([]byte, error) {
	switch c.Do {
	case FileRun:
		return Encode(fileCommand{c.Run}), nil
	case FileNone:
		return []byte(`"none"`), nil
	default:
		return Encode(c.Do), nil
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *FileChange) UnmarshalJSON(data []byte) error {
	*c = FileChange{}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		if err := json.Unmarshal(data, &c.Do); err != nil {
			return errors.New("on_change must be none, reload, restart or {run: [...]}")
		}
		if c.Do == "none" {
			c.Do = FileNone
		}
		return nil // Validate finds a word that is none of them
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var command fileCommand
	if err := dec.Decode(&command); err != nil {
		return err
	}
	c.Do, c.Run = FileRun, command.Run
	return nil
}

// Kind returns where the content comes from: text, template, secret or certificate; "" if that is
// not one of them.
func (f *File) Kind() string {
	kind, kinds := "", 0
	for name, ok := range map[string]bool{
		"text": f.Text != nil, "template": f.Template != "", "secret": f.Secret != "", "certificate": f.Certificate != nil,
	} {
		if ok {
			kind, kinds = name, kinds+1
		}
	}
	if kinds != 1 {
		return ""
	}
	return kind
}

// bytes returns how much of the spec the content takes.
func (f *File) bytes() int {
	n := len(f.Template)
	if f.Text != nil {
		n += len(*f.Text)
	}
	for _, name := range f.names() {
		n += len(name)
	}
	return n
}

// usesVar reports whether the content may depend on a variable.
func (f *File) usesVar(name string) bool {
	texts := f.names()
	if f.Template != "" {
		texts = []string{f.Template}
	}
	for _, text := range texts {
		if t, err := filetemplate.Parse(text); err != nil || t.UsesVar(name) {
			return true
		}
	}
	return false
}

// settleDefault is the default of File.Settle.
const settleDefault = Duration(5 * time.Second)

// completeFiles fills in the defaults.
func completeFiles(files []File) {
	for i := range files {
		f := &files[i]
		if f.Mode == "" {
			f.Mode = "0644"
			if f.Secret != "" || f.holdsKey() {
				f.Mode = "0600"
			}
		}
		f.Certificate.complete()
		if f.Settle == 0 && f.Template != "" {
			f.Settle = settleDefault
		}
	}
}

// FilesNeedRestart reports whether a change from one spec to another changes a file that says
// on_change: restart. A file that is no longer named stays as it is, and so does what runs with it.
func FilesNeedRestart(was, now *InstanceSpec) bool {
	before := map[string]string{}
	for i := range was.Files {
		before[was.Files[i].Path] = string(Encode(was.Files[i]))
	}
	for i := range now.Files {
		f := &now.Files[i]
		if f.OnChange.Do == FileRestart && (before[f.Path] != string(Encode(*f)) || usesChanged(f, was.Vars, now.Vars)) {
			return true
		}
	}
	return false
}

func usesChanged(f *File, was, now map[string]string) bool {
	for _, vars := range []map[string]string{was, now} {
		for name := range vars {
			before, had := was[name]
			after, has := now[name]
			if (had != has || before != after) && f.usesVar(name) {
				return true
			}
		}
	}
	return false
}
