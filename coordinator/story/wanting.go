package story

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/store"
)

// FileLine describes a file on a machine: file /etc/app.conf MISSING: the disk is full.
func FileLine(f store.FileReport, now time.Time) string {
	line := "file " + reason.OneLine(f.Path) + " "
	if f.State != store.FileDelivered {
		line += strings.ToUpper(reason.OneLine(string(f.State))) + ": " + reason.OneLine(f.Why)
		if !f.Ends.IsZero() {
			line += ", the certificate that is there ends in " + reason.Age(f.Ends, now)
		}
		return line
	}
	line += "delivered"
	if !f.At.IsZero() {
		line += " " + reason.Age(now, f.At) + " ago"
	}
	if !f.Ends.IsZero() {
		line += ", the certificate ends in " + reason.Age(f.Ends, now)
	}
	if f.Why != "" {
		line += ": " + reason.OneLine(f.Why)
	}
	return line
}

// secretProblems reports secrets that workloads wait for, and replicas that cannot read some.
func secretProblems(st *Shard) []Problem {
	if st.Secrets == nil {
		return nil
	}
	var found []Problem
	for _, g := range st.Groups {
		found = append(found, fileSecretProblems(g, st.Secrets)...)
		for _, variable := range slices.Sorted(maps.Keys(g.Spec.Secrets)) {
			name := g.Spec.Secrets[variable]
			if rec, there := st.Secrets[name]; there && rec.Key != "" {
				continue
			}
			what := fmt.Sprintf("secrets.%s: there is no secret %s: no workload is started without it", variable, name)
			if _, there := st.Secrets[name]; there {
				what = fmt.Sprintf("secrets.%s: the record of secret %s cannot be read: no workload is started without it",
					variable, name)
			}
			found = append(found, Problem{
				About: g.Name, Rule: "SEC-6", What: what,
				Remedies: Run("leasehold secret set " + name),
			})
		}
	}
	byKey := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(st.Secrets)) {
		if key := st.Secrets[name].Key; key != "" {
			byKey[key] = append(byKey[key], name)
		}
	}
	for _, r := range st.Replicas {
		for _, key := range slices.Sorted(maps.Keys(byKey)) {
			if slices.ContainsFunc(r.Record.SecretKeys,
				func(has string) bool { return strings.HasPrefix(has, key+":") }) {
				continue
			}
			found = append(found, Problem{
				About: r.Record.ID, Rule: "SEC-6",
				What:     fmt.Sprintf("does not have key %s, so it cannot deliver %s", key, strings.Join(byKey[key], ", ")),
				Remedies: Advise("put the key into its --secrets-key file, which is reloaded within a second"),
			})
		}
	}
	return found
}

// fileProblems reports files that instances of a group lack: each file and cause once.
func fileProblems(group string, lacking map[string][]string) []Problem {
	var found []Problem
	for _, what := range slices.Sorted(maps.Keys(lacking)) {
		ids := lacking[what]
		found = append(found, Problem{
			About: group, Rule: "FILE-1", What: fmt.Sprintf("%s, at %s", what, FewNames(ids)),
			Remedies: Inspect("leasehold instance show " + ids[0]),
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
func fileSecretProblems(g Known, secrets map[string]store.Secret) []Problem {
	var found []Problem
	for i, f := range g.Spec.Files {
		if f.Secret == "" || secrets[f.Secret].Key != "" {
			continue
		}
		what := fmt.Sprintf("files[%d]: there is no secret %s: no workload is started without %s", i, f.Secret, f.Path)
		if _, there := secrets[f.Secret]; there {
			what = fmt.Sprintf("files[%d]: the record of secret %s cannot be read: no workload is started without %s", i,
				f.Secret, f.Path)
		}
		found = append(found, Problem{
			About: g.Name, Rule: "SEC-6", What: what, Remedies: Run("leasehold secret set " + f.Secret),
		})
	}
	return found
}

// lackingFile says what is wrong with a file.
func lackingFile(f store.FileReport) string {
	return fmt.Sprintf("file %s is %s: %s", f.Path, wanting(f.State), reason.OneLine(f.Why))
}
