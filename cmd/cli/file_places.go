package cli

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/agent/files/roots"
	"github.com/leasehold/leasehold/agent/workload"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// filePlace is a path of a file in a group, and the field that names it.
type filePlace struct{ field, path string }

// rootsReport is the part of a stored report that says where an agent writes files.
type rootsReport struct {
	BootID string   `json:"boot_id"`
	Roots  []string `json:"files_roots"`
}

// judgePlaces refuses files that an agent of the group reports that it cannot write, because they
// are outside of all its directories (FILE-1). It refuses only on positive evidence: an agent that
// has not reported its directories, or is not connected, proves nothing.
func (inv *Invocation) judgePlaces(ctx context.Context, changes []groupChange) error {
	var wrong yamlfile.Problems
	var names []string
	for _, ch := range changes {
		found, err := inv.outside(ctx, ch)
		if err != nil {
			return err
		}
		for _, p := range found {
			if !slices.Contains(names, p.File) {
				names = append(names, p.File)
			}
		}
		wrong = append(wrong, found...)
	}
	if len(wrong) > 0 {
		return &misspelt{Problems: wrong, next: "correct " + strings.Join(names, ", ")}
	}
	return nil
}

// outside returns the new files of a group that one of its agents cannot write, each with the first
// such agent.
func (inv *Invocation) outside(ctx context.Context, ch groupChange) (yamlfile.Problems, error) {
	places := inv.newPlaces(ch)
	if len(places) == 0 {
		return nil, nil
	}
	var found yamlfile.Problems
	var failed error
	err := eachReport(ctx, inv, inv.keys(), ch.name, 0, func(id string, r rootsReport) bool {
		if len(r.Roots) == 0 || !slices.ContainsFunc(places, func(p filePlace) bool {
			at, err := workload.ExpandText("", p.path, ch.after.Vars, nil)
			return err != nil || !isBelow(at, r.Roots)
		}) {
			return true
		}
		var in store.Instance
		var asked bool
		if in, asked, failed = inv.placedBy(ctx, id, r.BootID, ch.after); failed != nil || !asked {
			return failed == nil
		}
		places = slices.DeleteFunc(places, func(p filePlace) bool {
			at, err := workload.ExpandText("", p.path, ch.after.Vars, in.Facts(inv.flags.Shard))
			if err != nil || isBelow(at, r.Roots) {
				return false
			}
			found = append(found, ch.file.Problem(p.field, outsideOf(at, in, r.Roots)))
			return true
		})
		return len(places) > 0
	})
	if failed != nil {
		err = failed
	}
	return found.Sorted(), err
}

func isBelow(at string, dirs []string) bool {
	_, _, inside := roots.Find(at, dirs)
	return inside
}

func outsideOf(at string, in store.Instance, dirs []string) string {
	choose := "choose a path below one of them"
	if in.Spec.Provider == builtIn && len(dirs) == 1 && strings.HasSuffix(dirs[0], "/files") &&
		strings.Contains(dirs[0], "/"+in.ID+"/") { // the default, which differs per machine
		choose = "choose a path below ${dir}/files"
	}
	return fmt.Sprintf("%s is in no directory in which the agent of %s writes files (%s): %s, or add %s to the agents' "+
		"--files-root (FILE-1)", reason.OneLine(at), in.ID, reason.OneLine(strings.Join(dirs, ", ")), choose,
		reason.OneLine(path.Dir(at)))
}

// newPlaces returns the paths that a change adds to a group, as far as they can be known: only the
// machine knows a provider's fact, such as ${dir}. Paths that the group has already are left out:
// status shows whether the machines can write them, and they must not prevent another change.
func (inv *Invocation) newPlaces(ch groupChange) []filePlace {
	if ch.file == nil || ch.after.Deleting {
		return nil
	}
	facts := (&store.Instance{}).Facts("")
	for name := range facts {
		facts[name] = "${" + name + "}"
	}
	expanded := func(g *store.Group, path string) string {
		at, err := workload.ExpandText("", path, g.Vars, facts)
		if err != nil {
			return ""
		}
		return at
	}
	had := map[string]bool{}
	if ch.before != nil && ch.broken == nil {
		for i := range ch.before.Files {
			for _, p := range ch.before.Files[i].Paths() {
				had[expanded(ch.before, p.Path)] = true
			}
		}
	}
	var added []filePlace
	for i := range ch.after.Files {
		for _, p := range ch.after.Files[i].Paths() {
			if at := expanded(&ch.after, p.Path); at != "" && !had[at] {
				added = append(added, filePlace{fmt.Sprintf("files[%d].%s", i, p.Field), p.Path})
			}
		}
	}
	return added
}

// placedBy reads the record of an instance, and reports whether the instance should get the files
// of the group and its agent is connected with this boot. An instance whose machine differs from
// what the group now wants is replaced, and its successor may have other directories.
func (inv *Invocation) placedBy(ctx context.Context, id, boot string, wanted store.Group) (
	in store.Instance, is bool, _ error,
) {
	kv, err := inv.find(ctx, inv.keys().Alive(id))
	if err != nil || kv.Modified == 0 {
		return in, false, err
	}
	alive, err := store.Decode[store.Alive](kv)
	if err != nil || alive.Record.State != store.StreamOpen || alive.Record.BootID != boot {
		return in, false, nil //nolint:nilerr // an unreadable record proves nothing, and status reports it
	}
	if kv, err = inv.find(ctx, inv.keys().Instance(id)); err != nil || kv.Modified == 0 {
		return in, false, err
	}
	v, err := store.Decode[store.Instance](kv)
	if err != nil {
		return in, false, nil //nolint:nilerr // as above
	}
	in = v.Record
	return in, in.Managed && in.Group == wanted.Name && in.Phase.Fills() && in.Spec.Provider == wanted.Provider &&
		reflect.DeepEqual(in.Spec.Template, wanted.Template), nil
}
