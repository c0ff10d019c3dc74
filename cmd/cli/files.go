package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/cmd/groupfile"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/settings"
	"github.com/leasehold/leasehold/store"
)

// Files are the files of -f, which count as one: everything in them is applied, or nothing.
type Files struct {
	Files []string `name:"file" short:"f" required:"" sep:"none" help:"File with groups, one in each YAML document; - is standard input. May be given several times." placeholder:"FILE"`
}

// flags returns the -f flags of a command line.
func (f Files) flags() string {
	words := make([]string, len(f.Files))
	for i, name := range f.Files {
		words[i] = "-f " + reason.ShellWord(name)
	}
	return strings.Join(words, " ")
}

// fileGroup is a group in a file.
type fileGroup struct {
	groupfile.Entry
	file string
}

const nameAFile = "give a readable file, or - for standard input"

// readFiles reads all files, and reports all problems in them at once. For a group that is static,
// only overrides are read. Which groups are static is read from etcd, unless the files are invalid
// in any case.
func (inv *Invocation) readFiles(ctx context.Context, f Files) ([]fileGroup, error) {
	files, err := inv.parseFiles(f)
	if err != nil {
		return nil, err
	}
	static := map[string]store.Group{}
	if !slices.ContainsFunc(files, (*groupfile.File).Malformed) {
		if static, err = inv.staticGroups(ctx); err != nil {
			return nil, err
		}
	}
	groups, err := judgeFiles(f, files, static)
	if err != nil {
		return nil, err
	}
	return groups, inv.checkSettings(ctx, f, groups)
}

// checkSettings checks the groups' settings against the schemas of their providers, as the running
// coordinators know them (PROV-3). The coordinators check them again.
func (inv *Invocation) checkSettings(ctx context.Context, f Files, groups []fileGroup) error {
	if !slices.ContainsFunc(groups, func(g fileGroup) bool { return g.Group.Provider != builtIn }) {
		return nil
	}
	providers, err := inv.providers(ctx)
	if err != nil {
		return err
	}
	var wrong yamlfile.Problems
	for _, g := range groups {
		i := slices.IndexFunc(providers, func(p providerShown) bool { return p.Name == g.Group.Provider })
		if i < 0 || len(providers[i].Settings) == 0 {
			continue
		}
		problems, err := settings.Problems(store.Encode(providers[i].Settings), g.Group.Template.Settings)
		if err != nil {
			return err
		}
		for _, p := range problems {
			wrong = append(wrong, g.Problem(p.Path, p.What+" (PROV-3: leasehold provider show "+g.Group.Provider+")"))
		}
	}
	if len(wrong) > 0 {
		return &misspelt{Problems: wrong.Sorted(), next: "correct " + strings.Join(f.Files, ", ")}
	}
	return nil
}

// builtIn is the provider without settings.
const builtIn = "process"

// staticGroups returns the static groups by name. It skips unusable ones: reading that group
// reports the problem.
func (inv *Invocation) staticGroups(ctx context.Context) (map[string]store.Group, error) {
	listing, err := inv.list(ctx, inv.keys().Of(store.KindStatic), 0)
	if err != nil {
		return nil, err
	}
	all := map[string]store.Group{}
	for _, kv := range listing.KVs {
		if g, err := store.ReadStatic(kv.Value); err == nil {
			all[g.Name] = g
		}
	}
	return all, nil
}

// parseFiles parses the files, valid or not.
func (inv *Invocation) parseFiles(f Files) ([]*groupfile.File, error) {
	var all []*groupfile.File
	for i, name := range f.Files {
		if slices.Contains(f.Files[:i], name) {
			return nil, failure(Usage, "give each file once", "-f %s is given twice", name)
		}
		file, err := inv.readFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, file)
	}
	return all, nil
}

// judgeGroups validates the groups in all files, which are named as the user gave them, and returns
// all problems at once.
func judgeGroups(names []string, files []*groupfile.File, static map[string]store.Group) (
	all []fileGroup, wrong yamlfile.Problems, _ error,
) {
	where := map[string]string{}
	for i, file := range files {
		entries, err := file.Judge(static)
		var problems yamlfile.Problems
		if errors.As(err, &problems) {
			wrong = append(wrong, problems...)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			if first, twice := where[e.Group.Name]; twice {
				wrong = append(wrong, e.Problem("name", fmt.Sprintf("group %q is in %s already", e.Group.Name, first)))
			} else {
				where[e.Group.Name] = names[i]
			}
			all = append(all, fileGroup{Entry: e, file: names[i]})
		}
	}
	return all, wrong, nil
}

// judgeFiles validates the files, given the static groups.
func judgeFiles(f Files, files []*groupfile.File, static map[string]store.Group) ([]fileGroup, error) {
	all, wrong, err := judgeGroups(f.Files, files, static)
	if err != nil {
		return nil, err
	}
	if len(all) > groupfile.MaxGroups { // all are written in one transaction
		return nil, failure(Usage, "give fewer files at once",
			"these files have %d groups, and at most %d can be written at once", len(all), groupfile.MaxGroups)
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	return all, nil
}

// readFile reads a file or standard input.
func (inv *Invocation) readFile(name string) (*groupfile.File, error) {
	if name == "-" {
		return groupfile.Parse("standard input", inv.env.Stdin)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil, failure(Usage, nameAFile, "-f %s: this is a directory, not a file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	file, err := groupfile.Parse(name, f)
	_ = f.Close() // it was only read
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	return file, nil
}

// unreadableFile returns why a file cannot be read, with its name once.
func unreadableFile(name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return failure(Usage, nameAFile, "-f %s: %s", name, err)
}
