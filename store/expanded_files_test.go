package store

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// A placeholder that nothing fills is refused where it stands, in files and in the probe of busy
// too.
//
// proves FILE-1, FILE-2, FILE-3, BUSY-1
func TestPlaceholdersOfFilesAndOfBusy(t *testing.T) {
	file := func(f File) func(*Group) { return func(g *Group) { g.Files = []File{{Path: "/a", Text: new("")}, f} } }
	signed := func(c FileCertificate) func(*Group) {
		c.Authority, c.Names = "web", []string{"a"}
		return file(File{Path: "${dir}/b", Certificate: &c})
	}
	for _, c := range []struct {
		edit func(*Group)
		want []string // the place, the placeholder and the rule of each error
	}{
		{file(File{Path: "${dir}/b", Text: new("${text} is written as it is")}), nil},
		{file(File{Path: "${dir}/${b}", Text: new("")}), []string{"files[1].path ${b} FILE-1"}},
		{
			file(File{Path: "/b", Text: new(""), OnChange: FileChange{Do: FileRun, Run: []string{"./again", "${c}"}}}),
			[]string{"files[1].on_change.run[1] ${c} FILE-3"},
		},
		{signed(FileCertificate{Key: "${dir}/key", Bundle: "${dir}/ca"}), nil},
		{signed(FileCertificate{Key: "${dir}/${d}"}), []string{"files[1].certificate.key ${d} FILE-2"}},
		{
			signed(FileCertificate{Key: "/key", Bundle: "${dir}/${e}"}),
			[]string{"files[1].certificate.bundle ${e} FILE-2"},
		},
		{func(g *Group) { g.Busy.HTTP = &BusyHTTP{Port: "${port}", Path: "/${host}"} }, nil},
		{
			func(g *Group) { g.Busy.HTTP = &BusyHTTP{Port: "${f}", Path: "/${g}"} },
			[]string{"busy.http.port ${f} BUSY-1", "busy.http.path ${g} BUSY-1"},
		},
		{
			func(g *Group) { g.Busy.Exec = &ExecCheck{Run: []string{"./idle", "${h}"}} },
			[]string{"busy.exec.run[1] ${h} BUSY-1"},
		},
		{func(g *Group) { g.Busy.File = "${dir}/${i}" }, []string{"busy.file ${i} BUSY-1"}},
	} {
		g := DefaultGroup()
		g.Name, g.Provider = "web", "process"
		c.edit(&g)
		g.Complete()
		err := g.Validate()
		var got []string
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				var field *FieldError
				if !errors.As(e, &field) {
					t.Fatal(e)
				}
				got = append(got, fmt.Sprintf("%s %s %s", field.Path, field.Value, field.Rule))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
