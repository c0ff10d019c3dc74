package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/output"
	"github.com/leasehold/leasehold/store"
)

// fileLine describes a file on a machine: file /etc/app.conf MISSING: the disk is full.
func fileLine(f store.FileReport, now time.Time) string {
	line := "file " + output.OneLine(f.Path) + " "
	if f.State != store.FileDelivered {
		return line + strings.ToUpper(output.OneLine(string(f.State))) + ": " + output.OneLine(f.Why)
	}
	line += "delivered"
	if !f.At.IsZero() {
		line += " " + output.Age(now, f.At) + " ago"
	}
	if f.Why != "" {
		line += ": " + output.OneLine(f.Why)
	}
	return line
}

// fileReport is the part of a stored report that is about files.
type fileReport struct {
	Files []store.FileReport `json:"files"`
}

// lackingFiles returns which instances of the groups with files lack one, by group and by what is wrong.
func (s *Session) lackingFiles(ctx context.Context, keys store.Keys, groups []group, at store.Revision) (map[string]map[string][]string, error) {
	lacking := map[string]map[string][]string{}
	for _, g := range groups {
		if len(g.Spec.Files) == 0 {
			continue
		}
		found := map[string][]string{}
		lacking[g.Name] = found
		err := s.parts(ctx, keys.Of(store.KindReports), keys.Report(g.Name+"-"), 1000, at, func(part store.Part) bool {
			for _, kv := range part.KVs {
				_, id, _ := keys.Split(kv.Key)
				if !strings.HasPrefix(id, g.Name+"-") {
					return false
				}
				if !isOf(id, g.Name) {
					continue
				}
				v, err := store.Decode[fileReport](kv)
				if err != nil {
					continue // status tells of it elsewhere
				}
				for _, f := range v.Record.Files {
					if f.State != store.FileDelivered {
						what := fmt.Sprintf("file %s is %s: %s", f.Path, wanting(f.State), output.OneLine(f.Why))
						found[what] = append(found[what], id)
					}
				}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return lacking, nil
}

// isOf reports whether an instance's ID is one of a group: GROUP-SLOT-SUFFIX.
func isOf(id, group string) bool {
	slot, _, more := strings.Cut(strings.TrimPrefix(id, group+"-"), "-")
	return more && slot != "" && strings.Trim(slot, "0123456789") == "" || strings.HasPrefix(id, group+"-x-")
}

// fileProblems reports files that instances of a group lack: each file and cause once.
func fileProblems(group string, lacking map[string][]string) []problem {
	var found []problem
	for _, what := range slices.Sorted(maps.Keys(lacking)) {
		ids := lacking[what]
		found = append(found, problem{
			About: group, Rule: "FILE-1", What: fmt.Sprintf("%s, at %s", what, fewNames(ids)),
			Next: "leasehold instance show " + ids[0], looks: 1,
		})
	}
	return found
}

func wanting(s store.FileState) string {
	if s == store.FileMissing {
		return "missing"
	}
	return "not as it is wanted"
}

// fileSecretProblems reports secrets that files wait for.
func fileSecretProblems(g group, secrets map[string]store.Secret) []problem {
	var found []problem
	for i, f := range g.Spec.Files {
		if f.Secret == "" || secrets[f.Secret].Key != "" {
			continue
		}
		what := fmt.Sprintf("files[%d]: there is no secret %s: no workload is started without %s", i, f.Secret, f.Path)
		if _, there := secrets[f.Secret]; there {
			what = fmt.Sprintf("files[%d]: the record of secret %s cannot be read: no workload is started without %s", i, f.Secret, f.Path)
		}
		found = append(found, problem{About: g.Name, Rule: "SEC-6", What: what, Next: "leasehold secret set " + f.Secret})
	}
	return found
}
