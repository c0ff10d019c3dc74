package groupfile

import (
	"encoding/json"

	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/store"
)

// besideStatic are the fields that can be set for a static group (REC-6).
var besideStatic = map[string]bool{"name": true, "size": true, "template.instance_type": true, "vars": true}

// override converts the document to overrides of the static group of its name.
func (d document) override(static store.Group) Entry {
	for _, f := range store.Fields {
		if node := d.walk.at[f.Path]; node != nil && !besideStatic[f.Path] {
			d.walk.Wrong(node, f.Path,
				"%s: cannot be set: the group is static, and only size, template.instance_type and vars can be set beside it "+
					"(REC-6)", yamlfile.Shown(node))
			d.unread[f.Path] = true
		}
	}
	said := map[string]any{}
	for _, name := range []string{"schema", "name", "size", "vars"} {
		if v, ok := d.fields[name]; ok {
			said[name] = v
		}
	}
	if t, ok := d.fields["template"].(map[string]any); ok && t["instance_type"] != nil {
		said["template"] = map[string]any{"instance_type": t["instance_type"]}
	}
	raw, err := json.Marshal(said)
	if err != nil {
		d.walk.Wrong(d.root, "", "%s", err)
		return Entry{}
	}
	o, err := store.ReadOverride(raw)
	if err != nil {
		d.walk.Wrong(d.root, "", "%s", err)
		return Entry{}
	}
	o.Schema = store.Schema
	g := o.Over(static)
	if err := g.Validate(); err != nil {
		d.walk.refused(d.root, err, d.unread)
	}
	return Entry{Group: g, Override: &o}
}

// NotBesideStatic lists the paths of the fields in which a whole spec differs from the static group
// and which cannot be overridden: they prevent the conversion of a group in groups/ into an
// override.
func NotBesideStatic(differing []string) []string {
	var out []string
	for _, path := range differing {
		ok := false
		for allowed := range besideStatic {
			ok = ok || path == allowed || len(path) > len(allowed) && path[:len(allowed)] == allowed &&
				(path[len(allowed)] == '.' || path[len(allowed)] == '[')
		}
		if !ok {
			out = append(out, path)
		}
	}
	return out
}
