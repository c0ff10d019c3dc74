// Package roots says where files may be. The agent asks it before it writes a file, and the
// operator's commands ask it before they write a group, so both mean the same by outside.
package roots

import "path/filepath"

// Find returns the first of the directories that a path is below, and the path's name relative to
// it. It compares names alone: symbolic links, which only the machine knows, are for the agent.
func Find(path string, dirs []string) (root, name string, inside bool) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return "", "", false
	}
	for _, root := range dirs {
		if name, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(name) && name != "." {
			return root, name, true
		}
	}
	return "", "", false
}
