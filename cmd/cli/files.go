package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/store"
)

// Files are the files that -f names, one or several. They count as one: all that is in them is applied, or nothing.
type Files struct {
	Files []string `name:"file" short:"f" required:"" sep:"none" help:"File with groups, one in each YAML document; - is standard input. May be given several times." placeholder:"FILE"`
}

// flags is how the files are named on a command line.
func (f Files) flags() string {
	words := make([]string, len(f.Files))
	for i, name := range f.Files {
		words[i] = "-f " + shellWord(name)
	}
	return strings.Join(words, " ")
}

// shellWord is a word as a shell takes it for one.
func shellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`|&;<>()*?[]{}#~!") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// fileGroup is a group and the file it is in.
type fileGroup struct {
	store.Group
	file string
}

const nameAFile = "name a file that can be read, or - for standard input"

// readFiles reads the groups in all files. What is wrong in any of them is told at once.
func (s *Session) readFiles(f Files) ([]fileGroup, error) {
	var all []fileGroup
	var wrong groupfile.Problems
	for i, name := range f.Files {
		if slices.Contains(f.Files[:i], name) {
			return nil, failure(Usage, "name each file once", "-f %s is given twice", name)
		}
		groups, err := s.readFile(name)
		var problems groupfile.Problems
		if errors.As(err, &problems) {
			wrong = append(wrong, problems...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if n := slices.IndexFunc(all, func(other fileGroup) bool { return other.Name == g.Name }); n >= 0 {
				wrong = append(wrong, groupfile.Problem{File: name, Field: "name", What: fmt.Sprintf("group %q is in %s already", g.Name, all[n].file)})
			}
			all = append(all, fileGroup{Group: g, file: name})
		}
	}
	if len(all) > groupfile.MaxGroups { // they are written in one transaction
		return nil, failure(Usage, "name fewer files at once", "there are %d groups in these files, and at most %d are written at once", len(all), groupfile.MaxGroups)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return all, nil
}

// readFile reads the groups in a file or from standard input. Unless something is wrong with what is in it, what fails is
// that the file cannot be read.
func (s *Session) readFile(name string) ([]store.Group, error) {
	if name == "-" {
		return groupfile.Read("standard input", s.env.Stdin)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, failure(Usage, nameAFile, "-f %s: this is a directory, not a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	groups, err := groupfile.Read(name, f)
	_ = f.Close() // it was only read
	var problems groupfile.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, unreadableFile(name, err)
	}
	return groups, err
}

// unreadableFile says why a file cannot be read, and names it once.
func unreadableFile(name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return failure(Usage, nameAFile, "-f %s: %s", name, err)
}
