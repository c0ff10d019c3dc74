package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// passwords returns the passwords of users, from a file with lines NAME:PASSWORD as --user takes
// them. A missing password is generated and added to the file before it is set in etcd, so none is
// ever lost. Without a file users have no passwords.
func (inv *Invocation) passwords(file string, users []string, dryRun bool) (map[string]string, error) {
	if file == "" || len(users) == 0 {
		return nil, nil
	}
	known, err := inv.readPasswords(file)
	if err != nil {
		return nil, err
	}
	all, added := map[string]string{}, ""
	for _, name := range users {
		if all[name] = known[name]; all[name] != "" {
			continue
		}
		if file == "-" {
			return nil, failure(Usage, "give a line NAME:PASSWORD for each user",
				"--passwords -: no password of %s was given", name)
		}
		all[name] = inv.env.RandomID()
		added += name + ":" + all[name] + "\n"
	}
	if added == "" || dryRun {
		return all, nil
	}
	if err := appendSecret(file, added); err != nil {
		return nil, failure(Failed, "give a writable file in an existing directory", "--passwords %s: %s", file, err)
	}
	inv.note("generated passwords of %s: they are in %s", strings.Join(newNames(added), ", "), file)
	return all, nil
}

// readPasswords reads the file, if it is there.
func (inv *Invocation) readPasswords(file string) (map[string]string, error) {
	from := inv.env.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, failure(Usage, "give a readable file", "--passwords: %s", err)
		}
		defer func() { _ = f.Close() }() // it was read only
		if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
			return nil, failure(Usage, "chmod 600 "+file, "--passwords %s: the file is readable by others", file)
		}
		from = f
	}
	known := map[string]string{}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, ok := strings.Cut(line, ":")
		if !ok || name == "" || password == "" { // the line itself is not shown: it may be a password
			return nil, failure(Usage, "correct "+file, "--passwords %s: line %d must be NAME:PASSWORD", file, n)
		}
		known[name] = password
	}
	if err := lines.Err(); err != nil {
		return nil, failure(Usage, "give a readable file", "--passwords %s: %s", file, err)
	}
	return known, nil
}

// appendSecret appends lines to a file that only its owner can read.
func appendSecret(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	whole, err := endsWithLine(f)
	if !whole {
		text = "\n" + text // an editor has left out the end of the last line
	}
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// endsWithLine reports whether a file is empty or its last line is complete.
func endsWithLine(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return true, err
	}
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] == '\n', err
}

func newNames(lines string) (names []string) {
	for line := range strings.Lines(lines) {
		name, _, _ := strings.Cut(line, ":")
		names = append(names, name)
	}
	return names
}
