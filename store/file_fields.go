package store

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store/filetemplate"
)

// Bounds of a group's files. Their text is part of each instance's record, as the settings of a
// template are.
const (
	MaxFiles     = 32
	maxFilesText = 64 << 10 // bytes, of all of them
	maxFilePath  = 255      // bytes
)

// inFiles begins the path of a field that each file has.
const inFiles = "files[]."

var (
	ownerForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$`)
	modeForm  = regexp.MustCompile(`^0?[0-7]{3}$`)
)

// fileField returns a field of each file.
func fileField(name, kind, def, allowed, rule, doc string, value func(*File) any, ok func(*File) bool) Field {
	return Field{
		Path: inFiles + name, Type: kind, Default: def, Allowed: allowed, Rule: rule, Doc: doc,
		wrong: func(g *Group) []FieldError {
			var out []FieldError
			for i := range g.Files {
				if f := &g.Files[i]; !ok(f) {
					out = append(out, FieldError{
						Path: fmt.Sprintf("files[%d].%s", i, name), Value: show(value(f)), Allowed: allowed, Rule: rule,
					})
				}
			}
			return out
		},
	}
}

// filePathOK reports whether a path may be one of a file: it is absolute and names one place only.
// Where the agent may write, the agent knows.
func filePathOK(p string) bool {
	if len(p) > maxFilePath || strings.ContainsAny(p, "\x00\n") {
		return false
	}
	if strings.HasPrefix(p, "${") {
		_, rest, closed := strings.Cut(p, "}")
		if !closed || !strings.HasPrefix(rest, "/") {
			return false
		}
		p = rest
	}
	return path.IsAbs(p) && path.Clean(p) == p && p != "/"
}

// fileFields returns the fields that each file has, after the list itself.
func fileFields() []Field {
	fields := []Field{
		{
			Path: "files", Type: "list of files", Default: "none", Rule: "FILE-1",
			Allowed: fmt.Sprintf("at most %d files with different paths and %d KiB of text and templates in all, "+
				"each of exactly one of text, template, secret and certificate",
				MaxFiles, maxFilesText>>10),
			Doc: "Files that the agent writes, before the workload is started and whenever they change: " +
				"see [files.md](files.md).",
			wrong: wrongFiles,
		},
		fileField("path", "string", "", fmt.Sprintf("an absolute path without .. of at most %d bytes, "+
			"which may begin with ${dir}", maxFilePath),
			"FILE-1", "Where it is, below a `--files-root` of the agent. The directory must exist.",
			func(f *File) any { return f.Path }, func(f *File) bool { return filePathOK(f.Path) }),
		{
			Path: inFiles + "text", Type: "string", Default: "none", Allowed: "text", Rule: "FILE-1",
			Doc: "The content, as it is.", wrong: func(*Group) []FieldError { return nil },
		},
		{
			Path: inFiles + "template", Type: "string", Default: "none", Rule: "FILE-1",
			Allowed: fmt.Sprintf("a template over .Vars, .Facts and .Peers that makes at most %d KiB",
				filetemplate.MaxBytes>>10),
			Doc: "The content, as Go's text/template: `{{.Vars.name}}`, `{{.Facts.slot}}`, " +
				"`{{range .Peers}}{{.Address}}{{end}}`.",
			wrong: wrongTemplates,
		},
		fileField("secret", "string", "none", SecretNames, "SEC-6",
			"The content is the value of this secret, which `leasehold secret set` sets.",
			func(f *File) any { return f.Secret }, func(f *File) bool { return f.Secret == "" || IsSecretName(f.Secret) }),
		fileField("owner", "string", "the agent's", "a user, or a user and a group like www-data:adm, by name or number",
			"FILE-3",
			"The owner of the file on the machine.",
			func(f *File) any { return f.Owner }, func(f *File) bool { return f.Owner == "" || ownerForm.MatchString(f.Owner) }),
		fileField("mode", "string", "0644, and 0600 for a secret", "three octal digits, like 0640", "FILE-3",
			"Its permissions, written as text: \"0640\".",
			func(f *File) any { return f.Mode }, func(f *File) bool { return modeForm.MatchString(f.Mode) }),
		fileField("on_change", "word or command", "none", `"none", "reload", "restart" or {run: [a program, its arguments]}`,
			"FILE-3",
			"What follows a change. reload: the workload gets SIGHUP. run: a command, which has 30s. restart: "+
				"a change of the group restarts the workload, one instance after the other, under the budgets.",
			func(f *File) any { return f.OnChange }, func(f *File) bool { return f.OnChange.ok() }),
		fileField("settle", "duration", "5s", "1s to 1h0m0s, and only with a template", "FILE-1",
			"How long changes of .Peers are gathered: the file is written for them once in this time, at most.",
			func(f *File) any { return f.Settle },
			func(f *File) bool {
				if f.Template == "" {
					return f.Settle == 0 || f.Kind() == "" // the kind says what is wrong
				}
				return f.Settle.D() >= time.Second && f.Settle.D() <= time.Hour
			}),
	}
	return append(fields, certificateFields()...)
}

// wrongFiles judges the list as a whole.
func wrongFiles(g *Group) []FieldError {
	var out []FieldError
	wrong := func(at, value, allowed string) {
		out = append(out, FieldError{Path: at, Value: value, Allowed: allowed, Rule: "FILE-1"})
	}
	if n := len(g.Files) + countBundles(g.Files); n > MaxFiles {
		wrong("files", number(n, "file"), fmt.Sprintf("at most %d files, bundles of certificates included", MaxFiles))
	}
	first, total := map[string]int{}, 0
	for i := range g.Files {
		f, at := &g.Files[i], fmt.Sprintf("files[%d]", i)
		total += f.bytes()
		if f.Kind() == "" {
			value := "none of them"
			if f.Text != nil || f.Template != "" || f.Secret != "" || f.Certificate != nil {
				value = "several of them"
			}
			wrong(at, value, "exactly one of text, template, secret and certificate")
		}
		for _, p := range f.Paths() {
			if earlier, twice := first[p.Path]; twice {
				wrong(at+"."+p.Field, show(p.Path), fmt.Sprintf("another path than files[%d] has", earlier))
				continue
			}
			first[p.Path] = i
		}
	}
	if n := countCertificates(g.Files); n > MaxCertificates {
		wrong("files", number(n, "certificate"), fmt.Sprintf("at most %d certificates", MaxCertificates))
	}
	if total > maxFilesText {
		wrong("files", fmt.Sprintf("%d bytes of text and templates", total), fmt.Sprintf("at most %d KiB", maxFilesText>>10))
	}
	return out
}

// wrongTemplates judges what can be judged without variables: an override of a static group may set
// more.
func wrongTemplates(g *Group) []FieldError {
	var out []FieldError
	for i := range g.Files {
		f := &g.Files[i]
		if f.Certificate != nil && f.OnChange.Do == FileRestart {
			out = append(out, FieldError{
				Path: fmt.Sprintf("files[%d].on_change", i), Value: show(f.OnChange), Rule: "FILE-2",
				Allowed: "none, reload or {run: [...]} with a certificate: a renewal restarts nothing",
			})
		}
		if f.Template == "" || f.bytes() > maxFilesText {
			continue
		}
		t, err := filetemplate.Parse(f.Template)
		switch {
		case err != nil:
			out = append(out, templateError(i, err))
		case t.UsesPeers() && f.OnChange.Do == FileRestart:
			out = append(out, FieldError{
				Path: fmt.Sprintf("files[%d].on_change", i), Value: show(f.OnChange), Rule: "FILE-3",
				Allowed: "none, reload or {run: [...]} with a template that uses .Peers: a change of peers restarts nothing",
			})
		}
	}
	return out
}

// templateError returns an error of a template, with its place.
func templateError(i int, err error) FieldError {
	e := FieldError{
		Path: fmt.Sprintf("files[%d].template", i), Value: err.Error(), Rule: "FILE-1",
		Allowed: "a template that can be rendered",
	}
	var at *filetemplate.Error
	if errors.As(err, &at) {
		e.Line, e.Column = at.Line, at.Column
	}
	return e
}

// maxSamplePeers is with how many peers templates are tried.
const maxSamplePeers = 1000

// fileErrors renders every template with the group's variables, and made-up facts and peers.
func (g *Group) fileErrors() []*FieldError {
	var errs []*FieldError
	for i := range g.Files {
		f := &g.Files[i]
		errs = append(errs, g.nameErrors(i)...)
		if f.Template == "" || f.bytes() > maxFilesText {
			continue
		}
		t, err := filetemplate.Parse(f.Template)
		if err != nil {
			continue // wrongTemplates says so
		}
		if err := t.Check(g.Vars, min(max(g.Size, 2), maxSamplePeers)); err != nil {
			e := templateError(i, err)
			errs = append(errs, &e)
		}
	}
	return errs
}
