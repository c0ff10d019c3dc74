package process

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// All providers of a directory are in one site, however many come first at once; another directory
// is another site, and an empty name is an error.
func TestSiteOfADirectory(t *testing.T) {
	sites := make([]string, 8)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, newDir), 0o700); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range sites {
		wg.Go(func() {
			site, err := siteOf(dir)
			if err != nil {
				t.Error(err)
			}
			sites[i] = site
		})
	}
	wg.Wait()
	for _, p := range sites {
		if p == "" || p != sites[0] {
			t.Errorf("one directory is in the sites %q", sites)
			break
		}
	}
	if left, err := os.ReadDir(filepath.Join(dir, newDir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if a, b := open(t, t.TempDir(), "plain"), open(t, t.TempDir(),
		"plain"); a.Capabilities().Site == b.Capabilities().Site {
		t.Errorf("two directories are in one site %q", a.Capabilities().Site)
	}
	if err := os.WriteFile(filepath.Join(dir, siteFile), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if site, err := siteOf(dir); err == nil {
		t.Errorf("an empty file names the site %q", site)
	}
}
