package tests

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// namedFile is a Go file that a package's comment names, with or without the folder.
var namedFile = regexp.MustCompile(`\b((?:[a-z0-9_-]+/)*[a-z0-9_]+\.go)\b`)

// A package's comment names only files that exist: it is the map by which a reader finds the rest.
func TestPackageCommentsNameFilesThatExist(t *testing.T) {
	root := projectRoot(t)
	looked := 0
	for _, f := range projectSource(t) {
		if f.tree.Doc == nil {
			continue
		}
		for _, m := range namedFile.FindAllStringSubmatch(f.tree.Doc.Text(), -1) {
			looked++
			found := false
			for _, dir := range []string{f.folder(), ".", path.Dir(f.folder())} {
				_, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(dir, m[1]))))
				found = found || err == nil
			}
			if !found {
				t.Errorf("%s: names %s, which does not exist", f.path, m[1])
			}
		}
	}
	if looked < 50 {
		t.Errorf("only %d names of files were looked at", looked)
	}
}
