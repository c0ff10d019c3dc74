package adapters

import (
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/cmd/groupfile"
)

// The examples on the page of sizes that follow the load work unchanged: the file is opened, and
// the groups name nothing that it does not have.
//
// proves SEC-7, AUTO-1
func TestThePageOfMetrics(t *testing.T) {
	const page = "../../docs/autoscaling.md"
	self, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(t.TempDir(), "queue.token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	known, groups := []string{}, 0
	for _, block := range blocks(t, page, "yaml") {
		switch {
		case strings.Contains(block, "metrics:\n"):
			text := strings.NewReplacer("/usr/lib/leasehold/orders", "/bin/cat", "user: orders", "user: "+self.Username,
				"/etc/leasehold/queue.token", token, "      cacert: /etc/leasehold/internal-ca.pem ", "      # ").Replace(block)
			all, err := All().Kinds.OpenMetrics(write(t, text), slog.New(slog.DiscardHandler))
			if err != nil || len(all) != 3 {
				t.Fatal(all, err)
			}
			for name, s := range all {
				known = append(known, name)
				if !s.Settings().PerGroup {
					t.Errorf("%s does not depend on the group", name)
				}
			}
		case strings.Contains(block, "scale:"):
			if !strings.HasPrefix(block, "name:") {
				block = "name: web\nprovider: ec2\n" + block
			}
			list, err := groupfile.Read("web.yaml", strings.NewReader(block))
			if err != nil {
				t.Fatalf("%s\n%v", block, err)
			}
			groups++
			for _, name := range list[0].Sources() {
				if !slices.Contains(known, name) {
					t.Errorf("no source %s is shown", name)
				}
			}
		}
	}
	if groups < 2 {
		t.Errorf("%d groups", groups)
	}
	for want, text := range map[string]string{
		"metrics.queue.http: url: is missing":                "metrics: {queue: {http: {path: $}}}",
		"unknown field \"method\"":                           "metrics: {queue: {http: {url: \"http://a\", method: POST}}}",
		"metrics.queue.prometheus: query: is missing":        "metrics: {queue: {prometheus: {url: \"http://a\"}}}",
		"is no kind of metric; the kinds are exec, http, pr": "metrics: {queue: {htpt: {}}}",
	} {
		if _, err := All().Kinds.OpenMetrics(write(t, text), slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
