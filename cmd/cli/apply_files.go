package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// maxApplied bounds the groups of one apply.
const maxApplied = 1000

// fileTypes are the extensions of the files that are read in a directory.
var fileTypes = []string{".yaml", ".yml", ".json"}

// expand returns the files in the directories, in order of name, and the files that were named
// themselves. It skips names that begin with a dot. A named directory may be a link, and is read
// where that leads when expand begins, even if the link is changed meanwhile; links below it are
// not followed to directories.
func expand(names []string) ([]string, error) {
	var files []string
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, failure(Usage, "give each of them once", "-f %s is given twice", name)
		}
		info, err := os.Stat(name)
		if name == "-" || err == nil && !info.IsDir() {
			files = append(files, name)
			continue
		}
		if err != nil {
			return nil, unreadableFile(name, err)
		}
		before := len(files)
		root, err := filepath.EvalSymlinks(name)
		if err != nil {
			return nil, unreadableFile(name, err)
		}
		err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return unreadableFile(path, err)
			case path == root:
				return nil
			case strings.HasPrefix(d.Name(), ".") && d.IsDir():
				return filepath.SkipDir
			case strings.HasPrefix(d.Name(), "."):
				return nil
			}
			kind := d.Type()
			if kind&fs.ModeSymlink != 0 {
				// If it were skipped, its groups would seem to be deleted.
				to, err := os.Stat(path)
				if err != nil {
					return unreadableFile(path, err)
				}
				if kind = to.Mode().Type(); kind.IsDir() {
					return failure(Usage, "name that directory too, with another -f, or replace the link by the directory",
						"-f %s: %s is a link to a directory, which is not followed", name, path)
				}
			}
			if kind.IsDir() || !slices.Contains(fileTypes, filepath.Ext(path)) {
				return nil
			}
			if !kind.IsRegular() { // a pipe would be waited for without an end
				return failure(Usage, "remove it, or name it itself with another -f",
					"-f %s: %s is a pipe, a socket or a device, not a file", name, path)
			}
			files = append(files, path)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, failure(Usage, "give a directory with files of groups",
				"-f %s: there is no file that ends in %s in this directory", name, strings.Join(fileTypes, ", "))
		}
	}
	return files, nil
}

// readDirectories parses all files.
func (inv *Invocation) readDirectories(names []string) ([]*groupfile.File, error) {
	paths, err := expand(names)
	if err != nil {
		return nil, err
	}
	var all []*groupfile.File
	for _, path := range paths {
		file, err := inv.readWithSettings(path)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

func (inv *Invocation) readWithSettings(path string) (*groupfile.File, error) {
	if path == "-" {
		return groupfile.ParseWithSettings("standard input", inv.env.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadableFile(path, err)
	}
	file, err := groupfile.ParseWithSettings(path, f)
	_ = f.Close() // it was only read
	if err != nil {
		return nil, unreadableFile(path, err)
	}
	return file, nil
}

// validateDirectories validates the groups in all files, and reports all mistakes at once.
func (inv *Invocation) validateDirectories(ctx context.Context, named []string,
	files []*groupfile.File,
) ([]fileGroup, error) {
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.File
	}
	all, wrong, err := judgeGroups(names, files, nil)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if len(all) > maxApplied {
		return nil, failure(Usage, "apply a part of the directory at a time",
			"the files have %d groups, and at most %d can be applied at once", len(all), maxApplied)
	}
	return all, inv.checkSettings(ctx, Files{named}, all)
}

// changeOfSettings returns what the files change in the shard's settings; nil if nothing. A setting
// that no file has stays unchanged.
func changeOfSettings(files []*groupfile.File, shard store.Versioned[store.Shard]) (*settingsChange, error) {
	var wrong yamlfile.Problems
	before := shard.Record.Settings.WithDefaults()
	after := before
	set := map[string]groupfile.Setting{}
	for _, file := range files {
		for _, one := range file.Settings {
			err := after.Set(one.Name, one.Value)
			var field *store.FieldError
			switch _, twice := set[one.Name]; {
			case errors.As(err, &field):
				wrong = append(wrong, one.Problem(field))
			case twice:
				wrong = append(wrong, one.Problem(&store.FieldError{
					Path: one.Name, Value: one.Value, Allowed: "set once, and another document sets it as well",
				}))
			}
			set[one.Name] = one
		}
	}
	if len(wrong) == 0 {
		for _, e := range after.Wrong() {
			if one, here := set[e.Path]; here {
				wrong = append(wrong, one.Problem(e))
				continue
			}
			wrong = append(wrong, yamlfile.Problem{
				File: files[0].File, Field: "settings." + e.Path, What: e.Value + ": must be " + e.Allowed,
			})
		}
	}
	if len(wrong) > 0 && len(set) > 0 {
		return nil, wrong
	}
	lines := settingChanges(before, after)
	if len(set) == 0 || len(lines) == 0 {
		return nil, nil
	}
	next := shard.Record
	next.Settings = after
	return &settingsChange{shard: shard, next: next, lines: lines}, nil
}

// operatorState returns what commands have set in a group, even if its spec cannot be used.
func operatorState(kv store.KV) (state store.OperatorState) {
	_ = json.Unmarshal(kv.Value, &state) // an unreadable group has no source
	return state
}
