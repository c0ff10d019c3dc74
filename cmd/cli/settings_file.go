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

// fromFile are the settings that the operator's file may have: the flags that every command has, by their names.
var fromFile = []string{"endpoints", "shard", "cacert", "cert", "key", "user", "output", "no-color", "timeout"}

// settingsFile gives the flags of all commands the values of the operator's file, where neither the command line nor the environment
// has one.
type settingsFile struct {
	usual  string // where it is unless --config says otherwise
	dev    string // where a dev of this machine leaves its settings; they count where nothing else says which etcd, or who asks
	path   string // where it was read; "" if there is none
	loaded bool
	values map[string]string
	from   map[string]string // which file a value is from
}

// Flags that go together: with one of the first somebody means another etcd than dev's, which knows no passwords; with one of the others they come
// to it as somebody else.
var (
	whichEtcd = []string{"endpoints", "cacert", "user"}
	whoAsks   = []string{"cert", "key"}
)

// devSettings is where a dev of this machine leaves its settings, if there is such a place.
func (e Env) devSettings() string {
	if e.DevData == "" {
		return ""
	}
	return services.DevSettings(e.DevData)
}

// Validate has nothing to say: what is wrong in the file is said when it is read.
func (f *settingsFile) Validate(*kong.Application) error { return nil }

// Resolve is asked for each flag that is not on the command line. For kong what it answers goes before the environment, so that where
// the flag's variable is set it must not answer.
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

// fromEnvironment is the variable that gives the flag its value; "" if none is set.
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
	return f.loadDev(ctx)
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
	if errors.Is(err, fs.ErrNotExist) && (path == f.usual || ctx.Command() == "dev") { // dev makes its own
		return nil
	}
	if err != nil {
		var why *fs.PathError
		if errors.As(err, &why) {
			err = why.Err
		}
		return failure(Usage, "name a file that can be read with --config or LEASEHOLD_CONFIG", "--config %s: %s", path, err)
	}
	f.path = path
	f.values, err = readSettings(path, text)
	for name := range f.values {
		f.from[name] = path
	}
	return err
}

// said says whether the command line, the environment or the operator's file gives one of these flags a value.
func (f *settingsFile) said(ctx *kong.Context, names []string) bool {
	return slices.ContainsFunc(ctx.Model.Flags, func(flag *kong.Flag) bool {
		given := slices.ContainsFunc(ctx.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved })
		_, inFile := f.values[flag.Name]
		return slices.Contains(names, flag.Name) && (given || inFile || fromEnvironment(flag) != "")
	})
}

// loadDev takes dev's settings where neither the command line, the environment nor the operator's file says which etcd; and of those who
// asks, where nobody says that.
func (f *settingsFile) loadDev(ctx *kong.Context) error {
	if f.said(ctx, whichEtcd) {
		return nil
	}
	another := f.said(ctx, whoAsks)
	text, err := os.ReadFile(f.dev)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) { // no dev is running, or it is none of ours
		return nil
	}
	if err != nil {
		return failure(Usage, "remove "+f.dev+"; a dev that runs writes it anew when it starts", "settings of dev: %s", err)
	}
	values, err := readSettings(f.dev, text)
	for name, value := range values {
		if _, inFile := f.values[name]; !inFile && (!another || !slices.Contains(whoAsks, name)) {
			f.values[name], f.from[name] = value, f.dev
		}
	}
	return err
}

// readSettings reads the text of a file with settings.
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
		return nil, failure(Usage, "correct "+path, "%s: must have settings like shard: default (line %d)", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if !slices.Contains(fromFile, key.Value) {
			return nil, failure(Usage, "correct "+path, "%s: unknown setting: must be one of %s (%s:%d:%d)", key.Value, strings.Join(fromFile, ", "), path, key.Line, key.Column)
		}
		words := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode && key.Value == "endpoints" {
			words = value.Content
		}
		var texts []string
		for _, w := range words {
			if w.Kind != yaml.ScalarNode || w.Tag == "!!null" {
				return nil, failure(Usage, "correct "+path, "%s: must be a value, as on the command line (%s:%d:%d)", key.Value, path, w.Line, w.Column)
			}
			texts = append(texts, w.Value)
		}
		values[key.Value] = strings.Join(texts, ",")
	}
	return values, nil
}

// setting is a setting of this program, and where its value comes from.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// settingsOf are the settings as they were found, in the order of the flags.
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
