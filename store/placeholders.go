package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// machineFacts are the names that the agent can fill in beside a group's variables and commonFacts,
// by provider.
// The specs of a provider that is not listed here are not checked for placeholders: what its
// machines know is not known.
var machineFacts = map[string][]string{
	"process": {"address", "dir", "host", "port"},
}

// MachineFacts returns the names of the facts that every machine of the provider has, and whether
// they are known.
func MachineFacts(provider string) ([]string, bool) {
	facts, known := machineFacts[provider]
	if !known {
		return nil, false
	}
	return slices.Sorted(slices.Values(slices.Concat(commonFacts, facts))), true
}

// Placeholders returns the names of the ${name} placeholders in a text, in order, as the agent
// expands them: $${ is a literal ${. open is the rest of the text from a ${ that is never closed,
// "" if there is none.
func Placeholders(text string) (names []string, open string) {
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return names, ""
		}
		if at > 0 && text[at-1] == '$' {
			text = text[at+2:]
			continue
		}
		name, rest, closed := strings.Cut(text[at+2:], "}")
		if !closed {
			return names, text[at:]
		}
		names, text = append(names, name), rest
	}
}

// expanded calls f for every text of the spec in which the agent replaces placeholders.
func (g *Group) expanded(f func(path, text, rule string)) {
	list := func(path string, run []string, rule string) {
		for i, arg := range run {
			f(fmt.Sprintf("%s[%d]", path, i), arg, rule)
		}
	}
	list("workload.run", g.Workload.Run, "")
	list("report.on_lease_lost.run", g.Report.OnLeaseLost.Run, "SAFE-9")
	if b := &g.Busy; b.HTTP != nil {
		f("busy.http.port", string(b.HTTP.Port), "BUSY-1")
		f("busy.http.path", b.HTTP.Path, "BUSY-1")
	}
	if b := &g.Busy; b.Exec != nil {
		list("busy.exec.run", b.Exec.Run, "BUSY-1")
	}
	if file := g.Busy.File; file != "" {
		f("busy.file", file, "BUSY-1")
	}
	for i := range g.Checks {
		c, at := &g.Checks[i], fmt.Sprintf("checks[%d].", i)
		text := func(path, text string) { f(at+path, text, "DET-9") }
		if !strings.HasPrefix(c.Name, c.Kind()+":"+c.subject()) { // else the part that is judged below gave it its name
			text("name", c.Name)
		}
		if h := c.HTTP; h != nil {
			text("http.scheme", h.Scheme)
			text("http.host", h.Host)
			text("http.port", string(h.Port))
			text("http.path", h.Path)
			text("http.method", h.Method)
			for _, k := range slices.Sorted(maps.Keys(h.Headers)) {
				text("http.headers."+k, h.Headers[k])
			}
			text("http.body", h.Body)
			text("http.body_regexp", h.BodyRegexp)
			text("http.ca_file", h.CAFile)
			text("http.server_name", h.ServerName)
		}
		if t := c.TCP; t != nil {
			text("tcp.host", t.Host)
			text("tcp.port", string(t.Port))
		}
		if r := c.GRPC; r != nil {
			text("grpc.host", r.Host)
			text("grpc.port", string(r.Port))
			text("grpc.service", r.Service)
			text("grpc.ca_file", r.CAFile)
			text("grpc.server_name", r.ServerName)
		}
		if e := c.Exec; e != nil {
			list(at+"exec.run", e.Run, "DET-9")
		}
		if p := c.Process; p != nil {
			text("process.name", p.Name)
			text("process.pid_file", p.PIDFile)
		}
	}
	for i := range g.Files {
		at := fmt.Sprintf("files[%d].", i)
		f(at+"path", g.Files[i].Path, "FILE-1")
		if c := g.Files[i].Certificate; c != nil {
			f(at+"certificate.key", c.Key, "FILE-2")
			f(at+"certificate.bundle", c.Bundle, "FILE-2")
		}
		list(at+"on_change.run", g.Files[i].OnChange.Run, "FILE-3")
	}
	list("drain.hook", g.Drain.Hook, "DRAIN-1")
}

// placeholderErrors returns an error for each placeholder that neither a variable nor a fact of the
// machine can fill: the agent would refuse to start the workload, or fail the check, on every
// instance.
func (g *Group) placeholderErrors() []*FieldError {
	facts, known := MachineFacts(g.Provider)
	if !known {
		return nil
	}
	names := slices.AppendSeq(facts, maps.Keys(g.Vars))
	slices.Sort(names)
	names = slices.Compact(names)
	var errs []*FieldError
	g.expanded(func(path, text, rule string) {
		used, open := Placeholders(text)
		for _, name := range used {
			if slices.Contains(names, name) {
				continue
			}
			errs = append(errs, &FieldError{
				Path: path, Value: "${" + name + "}", Rule: rule, Name: name, Known: names,
				Allowed: fmt.Sprintf("a variable of vars or a fact of the machine (%s); a literal ${ is written $${",
					strings.Join(names, ", ")),
			})
		}
		if open != "" {
			errs = append(errs, &FieldError{
				Path: path, Value: show(open),
				Allowed: "closed with }; a literal ${ is written $${", Rule: rule,
			})
		}
	})
	return errs
}
