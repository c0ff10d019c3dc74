package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// file is a notice that an operator, or a script that watches another source, writes on the
// machine.
type file struct {
	path     string
	kind     string
	instance string
}

func (file) slowAtFirst() bool { return false }

// written is the content of such a file.
type written struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`
	In   string `json:"in"` // a duration, from when the file was written
	At   string `json:"at"` // RFC 3339
	// Instance is the instance that the file is for; "": the one that the machine is. A machine may
	// become another instance, whose agent uses the same directory.
	Instance string `json:"instance"`
}

func (s file) look(context.Context) (*sighting, error) {
	info, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", s.path) // reading a pipe could block for ever
	}
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readBounded(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	w, err := parse(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.path, err)
	}
	if w.Instance != "" && s.instance != "" && w.Instance != s.instance {
		return nil, nil
	}
	found := &sighting{id: string(data), kind: w.Kind, why: w.Why}
	if found.kind == "" {
		found.kind = s.kind
	}
	if found.kind == "" {
		found.kind = "notice"
	}
	if w.In != "" {
		in, err := time.ParseDuration(w.In)
		if err != nil || in < 0 {
			return nil, fmt.Errorf("read %s: in: %q is no duration like 2m", s.path, w.In)
		}
		found.left, found.timed = time.Until(info.ModTime().Add(in)), true
		found.id += "\x00" + info.ModTime().String()
	}
	if w.At != "" {
		at, err := time.Parse(time.RFC3339, w.At)
		if err != nil {
			return nil, fmt.Errorf("read %s: at: %q is no time like 2006-01-02T15:04:05Z", s.path, w.At)
		}
		found.left, found.timed = time.Until(at), true
	}
	return found, nil
}

// parse reads JSON, or lines such as "why: the host is repaired". A line without a key is part of
// why.
func parse(text string) (w written, err error) {
	if strings.HasPrefix(text, "{") {
		err = json.Unmarshal([]byte(text), &w)
		return w, err
	}
	var why []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "kind":
			w.Kind = value
		case "in":
			w.In = value
		case "at":
			w.At = value
		case "why":
			why = append(why, value)
		default:
			why = append(why, line)
		}
	}
	w.Why = strings.TrimSpace(strings.Join(why, " "))
	return w, nil
}
