package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// What a group names and no coordinator has is said before anything is written, with what there is.
//
// proves FILE-2, LB-1
func TestWhatNoCoordinatorHasIsSaidBeforehand(t *testing.T) {
	t.Chdir(t.TempDir())
	const head = "name: web\nsize: 1\nprovider: process\nworkload: {run: [./web]}\n"
	certificate := func(fields string) string {
		return head + "files: [{path: /tls.crt, certificate: {key: /tls.key, " + fields + "}}]\n"
	}
	old := store.Replica{Schema: store.Schema, ID: "coord-a", Address: "a:1", Providers: []string{"process"}}
	replica := old
	replica.Balancers = []string{"edge"}
	replica.Authorities = map[string]store.AuthorityLimits{
		"internal": {Domains: []string{"web.internal"}, MaxLifetime: store.Duration(48 * time.Hour)},
	}
	for name, test := range map[string]struct {
		file    string
		replica store.Replica
		refused string
		warned  string
	}{
		"all is there": {certificate(`authority: internal, names: ["{{.Facts.instance}}.web.internal"]`), replica, "", ""},
		"no authority": {
			certificate("authority: public, names: [a.web.internal]"), replica,
			`no running coordinator has the authority "public"; they have: internal; their file of providers names those`, "",
		},
		"an older coordinator does not say": {certificate("authority: public, names: [a.web.internal]"), old, "", ""},
		"too long": {
			certificate("authority: internal, names: [a.web.internal], lifetime: 72h"), replica,
			"files[0].certificate.lifetime: 72h0m0s: authority internal allows at most 48h0m0s", "",
		},
		"another's domain": {
			certificate(`authority: internal, names: ["{{.Facts.instance}}.example.com"]`), replica, "",
			"authority internal does not certify it: it is for domains web.internal and networks none",
		},
		"no balancer": {
			head + "load_balancers: [{name: front, port: 80}]\n", replica,
			`no running coordinator has the load balancer "front"; they have: edge`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve()
			for _, id := range []string{"coord-a", "coord-b"} {
				test.replica.ID = id
				w.put(store.KindReplicas, id, test.replica)
			}
			if err := os.WriteFile("web.yaml", []byte(test.file), 0o600); err != nil {
				t.Fatal(err)
			}
			says := func(text, what string) bool {
				return strings.Contains(strings.Join(strings.Fields(text), " "), what)
			}
			_, out, problem := w.run("group", "apply", "-f", "web.yaml", "--dry-run")
			if says(out, "refused:") != (test.refused != "") || !says(out, test.refused) || !says(problem, test.warned) {
				t.Errorf("a dry run says\n%s%s", out, problem)
			}
			code, out, problem := w.run("group", "apply", "-f", "web.yaml")
			want := test.refused + test.warned
			if code != Done || says(problem, "warning:") != (want != "") || !says(problem, want) {
				t.Errorf("exit %d\n%s%s", code, out, problem)
			}
		})
	}
}
