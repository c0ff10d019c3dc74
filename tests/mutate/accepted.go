package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// acceptedFile is the list of a package's accepted mutants.
func acceptedFile(root, path string) string {
	return filepath.Join(root, "tests", "mutate", "accepted",
		strings.ReplaceAll(filepath.ToSlash(path), "/", "-")+".txt")
}

// readAccepted returns the reason for each accepted mutant by its key. A line holds file, function,
// operator, source text and reason, separated by tabs; lines that begin with # are for people.
func readAccepted(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseAccepted(name, string(text))
}

func parseAccepted(name, text string) (map[string]string, error) {
	out := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, '\t')
		if strings.Count(line, "\t") != 4 {
			return nil,
				fmt.Errorf("%s:%d: a line has five fields separated by tabs: file, function, operator, text, reason",
					name, i+1)
		}
		key, reason := line[:at], line[at+1:]
		if !strings.HasPrefix(reason, "equivalent: ") && !strings.HasPrefix(reason, "accepted: ") {
			return nil, fmt.Errorf("%s:%d: a reason begins with \"equivalent: \" or \"accepted: \"", name, i+1)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%s:%d: the same mutant is listed twice", name, i+1)
		}
		out[key] = reason
	}
	return out, nil
}

// verdict compares what became of the mutants with the list.
type verdict struct {
	count    map[outcome]int
	reasons  map[string]int // accepted survivors by the first word of their reason
	unlisted []string       // survivors that are not listed
	stale    []string       // listed mutants that are caught, or gone
}

// judge takes the outcomes by key. The run was of all mutants, or of a sample.
func judge(mutants []mutant, outcomes map[string]outcome, accepted map[string]string, sample bool) verdict {
	v := verdict{count: map[outcome]int{}, reasons: map[string]int{}}
	known := map[string]bool{}
	for _, m := range mutants {
		key := m.key()
		known[key] = true
		o, tried := outcomes[key]
		if !tried {
			continue
		}
		v.count[o]++
		reason, listed := accepted[key]
		switch {
		case o.lived() && listed:
			kind, _, _ := strings.Cut(reason, ":")
			v.reasons[kind]++
		case o.lived():
			v.unlisted = append(v.unlisted, key+"\t"+o.String())
		case listed:
			v.stale = append(v.stale, key+"\t"+o.String())
		}
	}
	if !sample {
		for key := range accepted {
			if !known[key] {
				v.stale = append(v.stale, key+"\tno such place any more")
			}
		}
	}
	return v
}

func (v verdict) clean() bool { return len(v.unlisted) == 0 && len(v.stale) == 0 }
