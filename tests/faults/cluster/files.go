package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The files of a group, by their names on its machines. Each begins and ends with what tells
// whether it is whole.
const (
	fileOfVars  = "edition"
	fileOfPeers = "peers"

	peersTemplate = "begin\n{{range .Peers}}{{.Instance}}\n{{end}}end\n"
)

// varsTemplate is a file that is long in every second edition: where a disk is full, the longer one
// has no room.
func varsTemplate(edition int) string {
	return "begin {{.Vars.edition}}\n" + strings.Repeat("x", 100+edition%2*5000) + "\nend {{.Vars.edition}}\n"
}

// whole says what is wrong with files of machines that were not written at once; see cloud.Config.
var whole = map[string]func(string) string{
	fileOfVars: func(content string) string {
		first, _, _ := strings.Cut(content, "\n")
		edition, begins := strings.CutPrefix(first, "begin ")
		if !begins || !strings.HasSuffix(content, "\nend "+edition+"\n") {
			return fmt.Sprintf("%d bytes that begin with %q and end with %q", len(content), first,
				content[max(0, len(content)-20):])
		}
		return ""
	},
	fileOfPeers: func(content string) string {
		if !strings.HasPrefix(content, "begin\n") || !strings.HasSuffix(content, "\nend\n") {
			return fmt.Sprintf("it is %q", content)
		}
		return ""
	},
	fileOfCertificate: wholePEM("CERTIFICATE", parseCertificate),
	fileOfBundle:      wholePEM("CERTIFICATE", parseCertificate),
	fileOfKey:         wholePEM("PRIVATE KEY", parseKey),
}

// served returns what is not as it should be in the end with the load balancer and with files; ""
// if nothing.
func (c *Cluster) served() string {
	c.mu.Lock()
	var want []string
	files := map[string]string{} // by instance, the file of vars
	peers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		g := c.groups[name]
		if !g.Served {
			continue
		}
		ids := slices.DeleteFunc(c.Cloud.Running(), func(id string) bool { return !strings.HasPrefix(id, name+"-") })
		want = append(want, ids...)
		text := strings.ReplaceAll(varsTemplate(g.edits["vars"]), "{{.Vars.edition}}", fmt.Sprint(g.edits["vars"]))
		for _, id := range ids {
			files[id], peers[id] = text, "begin\n"+strings.Join(append(ids, "end"), "\n")+"\n"
		}
	}
	c.mu.Unlock()
	slices.Sort(want)
	if have := c.Cloud.InService(); !slices.Equal(have, want) {
		return fmt.Sprintf("in service are %v, and not %v", have, want)
	}
	if all := c.Cloud.Members(); !slices.Equal(all, want) {
		return fmt.Sprintf("members of the load balancer are %v, and not %v", all, want)
	}
	for _, id := range want {
		if have, _ := c.Cloud.File(id, fileOfVars); have != files[id] {
			return fmt.Sprintf("%s of %s is %.20q", fileOfVars, id, have)
		}
		if have, _ := c.Cloud.File(id, fileOfPeers); have != peers[id] {
			return fmt.Sprintf("%s of %s is %q, and not %q", fileOfPeers, id, have, peers[id])
		}
		if wrong := c.certified(id); wrong != "" {
			return wrong
		}
	}
	return ""
}
