package cli

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/services"
	"go.yaml.in/yaml/v4"
)

// fromFile are the settings allowed in the operator's file: the flags of every command.
var fromFile = []string{"endpoints", "shard", "cacert", "cert", "key", "user", "output", "no-color", "timeout"}

// settingsFile sets flags from the operator's file, where neither the command line nor the
// environment has a value.
type settingsFile struct {
	usual string // default path, without --config
	// settings files of leasehold dev and server, the first of which is used if nothing else names an
	// etcd or a user
	local  []string
	path   string // the file that was read; "" if there is none
	loaded bool
	values map[string]string
	from   map[string]string // file of each value
}

// Flags that go together: one of the first means another etcd than dev's, which has no passwords;
// one of the others means another user of dev's etcd.
var (
	whichEtcd = []string{"endpoints", "cacert", "user"}
	whoAsks   = []string{"cert", "key"}
)

// localSettings returns the settings files that a leasehold dev or server on this machine would
// have.
func (e Env) localSettings() (files []string) {
	if e.DevData != "" {
		files = append(files, services.DevSettings(e.DevData))
	}
	if e.ServerSettings != "" {
		files = append(files, e.ServerSettings)
	}
	return files
}

// Validate accepts everything: errors of the file are reported when it is read.
func (f *settingsFile) Validate(*kong.Application) error { return nil }

// Resolve is called for each flag that is not on the command line. In kong its answer takes
// precedence over the environment, so it must not answer if the flag's variable is set.
func (f *settingsFile) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !slices.Contains(ctx.Model.Flags, flag) || !slices.Contains(fromFile, flag.Name) || fromEnvironment(flag) != "" {
		return nil, nil
	}
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	if v, ok := f.values[flag.Name]; ok {
		return v, nil
	}
	return nil, nil
}

// fromEnvironment returns the variable that sets the flag; "" if none does.
func fromEnvironment(flag *kong.Flag) string {
	for _, name := range flag.Tag.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name
		}
	}
	return ""
}

// load reads the files, once.
func (f *settingsFile) load(ctx *kong.Context) error {
	if f.loaded {
		return nil
	}
	f.loaded, f.values, f.from = true, map[string]string{}, map[string]string{}
	if err := f.loadOwn(ctx); err != nil {
		return err
	}
	return f.loadLocal(ctx)
}

// loadOwn reads the operator's file.
func (f *settingsFile) loadOwn(ctx *kong.Context) error {
	path := f.usual
	for _, flag := range ctx.Model.Flags {
		if flag.Name == "config" {
			if given, ok := ctx.FlagValue(flag).(string); ok && given != "" {
				path = given
			}
		}
	}
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	// these create their own
	if errors.Is(err, fs.ErrNotExist) &&
		(path == f.usual || slices.Contains([]string{"dev", "server run"}, ctx.Command())) {
		return nil
	}
	if err != nil {
		var why *fs.PathError
		if errors.As(err, &why) {
			err = why.Err
		}
		return failure(Usage, "give a readable file with --config or LEASEHOLD_CONFIG", "--config %s: %s", path, err)
	}
	f.path = path
	f.values, err = readSettings(path, text)
	for name := range f.values {
		f.from[name] = path
	}
	return err
}

// said reports whether the command line, the environment or the operator's file sets one of these
// flags.
func (f *settingsFile) said(ctx *kong.Context, names []string) bool {
	return slices.ContainsFunc(ctx.Model.Flags, func(flag *kong.Flag) bool {
		given := slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved })
		_, inFile := f.values[flag.Name]
		return slices.Contains(names, flag.Name) && (given || inFile || fromEnvironment(flag) != "")
	})
}

// loadLocal uses the settings of a dev or server on this machine if neither the command line, the
// environment nor the operator's file names an etcd, and its credentials if none of them names a
// user.
func (f *settingsFile) loadLocal(ctx *kong.Context) error {
	if f.said(ctx, whichEtcd) {
		return nil
	}
	another := f.said(ctx, whoAsks)
	for _, file := range f.local {
		text, err := os.ReadFile(file)
		// none is running, or it belongs to another user
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return failure(Usage, "remove "+file+"; leasehold dev or server writes it again when it starts",
				"settings of this machine: %s", err)
		}
		values, err := readSettings(file, text)
		for name, value := range values {
			if _, inFile := f.values[name]; !inFile && (!another || !slices.Contains(whoAsks, name)) {
				f.values[name], f.from[name] = value, file
			}
		}
		return err
	}
	return nil
}

// readSettings parses the text of a settings file.
func readSettings(path string, text []byte) (map[string]string, error) {
	var doc yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err == nil {
		err = loader.Load(&doc)
	}
	if err != nil && !errors.Is(err, io.EOF) { // nothing but comments: no document
		return nil, failure(Usage, "correct "+path, "%s: not YAML: %s", path, joined(err))
	}
	values := map[string]string{}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return values, nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, failure(Usage, "correct "+path, "%s: must have settings like shard: default (line %d)", path,
			root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if !slices.Contains(fromFile, key.Value) {
			return nil, failure(Usage, "correct "+path, "%s: unknown setting: must be one of %s (%s:%d:%d)", key.Value,
				strings.Join(fromFile, ", "), path, key.Line, key.Column)
		}
		words := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode && key.Value == "endpoints" {
			words = value.Content
		}
		var texts []string
		for _, w := range words {
			if w.Kind != yaml.ScalarNode || w.Tag == "!!null" {
				return nil, failure(Usage, "correct "+path, "%s: must be a value, as on the command line (%s:%d:%d)",
					key.Value, path, w.Line, w.Column)
			}
			texts = append(texts, w.Value)
		}
		values[key.Value] = strings.Join(texts, ",")
	}
	return values, nil
}

// setting is a setting of this program, and the source of its value.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// settingsOf returns the settings as found, in the order of the flags.
func settingsOf(ctx *kong.Context, file *settingsFile) []setting {
	var all []setting
	for _, flag := range ctx.Model.Flags {
		if !slices.Contains(fromFile, flag.Name) && flag.Name != "config" {
			continue
		}
		s := setting{Name: flag.Name, Value: shownValue(flag, ctx.FlagValue(flag)), From: "default"}
		given := slices.IndexFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag })
		switch {
		case given >= 0 && !ctx.Path[given].Resolved:
			s.From = "flag"
		case given >= 0:
			s.From = "file " + file.from[flag.Name]
		case fromEnvironment(flag) != "":
			s.From = "environment " + fromEnvironment(flag)
		case flag.Name == "config" && file.path != "":
			s.Value = file.path
		}
		all = append(all, s)
	}
	return all
}
