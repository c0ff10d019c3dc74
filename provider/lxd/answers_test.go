package lxd

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/lxd/lxdtest"
)

// answers has LXD refuse what the provider's calls meet, and compares what each refusal means.
//
// proves PROV-5
func answers(t *testing.T, l *lxdtest.LXD) {
	p := onReal(t, l, nil)
	const at = "/1.0/instances/answers"
	post := func(change func(body map[string]any)) request {
		body := map[string]any{
			"name": "answers", "type": "container", "profiles": []string{},
			"source":  map[string]string{"type": "image", "alias": "tiny"},
			"devices": map[string]any{"root": map[string]string{"type": "disk", "path": "/", "pool": lxdtest.Pool}},
		}
		if change != nil {
			body["name"] = "answers-2"
			change(body)
		}
		return request{method: http.MethodPost, path: "/1.0/instances", body: body}
	}
	with := func(key string, value any) request {
		return post(func(body map[string]any) { body[key] = value })
	}
	state := func(action string) request {
		return request{method: http.MethodPut, path: at + "/state", body: map[string]any{
			"action": action, "timeout": -1, "force": action == "stop",
		}}
	}
	mkdir := request{
		method: http.MethodPost, path: at + "/files", query: url.Values{"path": {"/etc/some"}},
		header: http.Header{"X-Lxd-Type": {"directory"}},
	}
	console := request{method: http.MethodGet, path: at + "/console"}
	remove := request{method: http.MethodDelete, path: at}
	const succeeds = meaning(-1)
	for _, c := range []struct {
		what string
		r    request
		want meaning
	}{
		{"create", post(nil), succeeds},
		{"create it again", post(nil), taken},
		{"the console before the first start", console, silent},
		{"stop what is down", state("stop"), stopped},
		{"start", state("start"), succeeds},
		{"start what is up", state("start"), running},
		{"delete what is up", remove, running},
		{"change what has changed", request{
			method: http.MethodPatch, path: at, header: http.Header{"If-Match": {"other"}},
			body: map[string]any{"config": map[string]string{"user.x": "y"}},
		}, changed},
		{"make a directory", mkdir, succeeds},
		{"a name that is none", with("name", "-"), invalid},
		{"a key that is none", with("config", map[string]string{"no.such": "1"}), invalid},
		{"a value that is none", with("config", map[string]string{"limits.memory": "lots"}), invalid},
		{
			"a kind of device that is none",
			with("devices", map[string]any{"x": map[string]string{"type": "what"}}), invalid,
		},
		{"a kind of instance that is none", with("type", "what"), invalid},
		{"stop", state("stop"), succeeds},
		{"delete", remove, succeeds},
		{"delete it again", remove, absent},
		{"start nothing", state("start"), absent},
	} {
		var err error
		if c.r.path == console.path {
			_, _, err = p.client.send(t.Context(), c.r) // a file
		} else {
			_, err = p.client.call(t.Context(), c.r, nil)
		}
		got := succeeds
		var f *failure
		switch {
		case errors.As(err, &f):
			got = f.meaning()
			if c.want == invalid && provider.KindOf(ofTemplate(err)) == provider.Invalid {
				got = invalid
			}
			t.Logf("%s: %d %q", c.what, f.code, f.text)
		case err != nil:
			t.Fatal(c.what, err)
		}
		if got != c.want {
			t.Errorf("%s: %v has meaning %d, want %d", c.what, f, got, c.want)
		}
	}
}

// recorded are answers of real LXDs to the provider's calls: LXD 5.0.2, and two of later source.
var recorded = []struct {
	code int // 0: the end of an operation
	text string
	want meaning
}{
	{403, "not authorized", refused},
	{412, "ETag doesn't match: 7d1cb8c55bea vs a37b13672205", changed},
	{0, `Failed creating instance record: Instance is busy running a "create" operation`, busy},
	{500, "Failed to create instance update operation: A matching non-reusable operation has now succeeded", busy},
	{500, "read unix @->/proc/self/fd/85/forkfile.sock: read: connection reset by peer", busy},
	{
		0, `Failed creating instance record: Add instance info to the database: This "instances" entry already exists`,
		taken,
	},
	{500, `sftp: "mkdir /etc/leasehold: file exists" (SSH_FX_FAILURE)`, taken},
	{500, "open /var/lib/lxd/logs/ls-a/console.log: no such file or directory", silent},
	{404, "Instance not found", absent},
	{404, "Image alias not found", absent},
	{404, "Project not found", noProject},
	{404, "Failed loading project: Project not found", noProject},
	{500, `Reached maximum number of instances of type "container" in project "none"`, exhausted},
	{500, `Failed checking if instance creation allowed: Reached maximum aggregate value "64MiB" for "limits.memory" in ` +
		`project "small"`, exhausted},
	{500, `Failed checking if instance creation allowed: Failed getting usage of project entities: Instance "ls-a" in ` +
		`project "small" has no "limits.memory" config, either directly or via a profile`, invalid},
	{500, `Requested profile "nothing" doesn't exist`, invalid},
	{0, "Image not provided for instance creation", invalid},
	{0, `Failed to start device "eth0": Parent device "nothing" doesn't exist`, invalid},
	{0, `Failed creating instance record: Invalid value for an integer "many"`, invalid},
	{0, `Failed creating instance record: Failed initialising instance: Invalid devices: Device validation failed for ` +
		`"eth0": Failed loading device "eth0": Failed to load network "nothing" for project "default": ` +
		"Network not found", invalid},
	{0, "Failed creating instance record: Failed initialising instance: Failed loading storage pool: " +
		"Storage pool not found", invalid},
	{0, "Failed creating instance record: Failed initialising instance: Failed getting root disk: " +
		"No root device could be found", invalid},
	{0, "Failed creating instance from image: Unable to unpack image, run out of disk space", full},
	{0, "Failed to run: forkstart: exit status 1", nothing},
	{500, "Failed to fetch image: unexpected EOF", nothing},
	{503, "LXD is shutting down", nothing},
	// LXD 6 gives operations codes.
	{409, `This "instances" entry already exists`, taken},
	{404, "No suitable cluster member could be found", full},
}

// proves PROV-5
func TestAnswersHaveAMeaning(t *testing.T) {
	for _, c := range recorded {
		if got := (&failure{code: c.code, text: c.text}).meaning(); got != c.want {
			t.Errorf("%d %q has meaning %d, want %d", c.code, c.text, got, c.want)
		}
	}
	for i, s := range sentences {
		if s.text != strings.ToLower(s.text) || s.source == "" {
			t.Errorf("%q: must be in lower case, and have its source", s.text)
		}
		for _, before := range sentences[:i] {
			if strings.Contains(s.text, before.text) {
				t.Errorf("%q is never reached: %q comes first", s.text, before.text)
			}
		}
	}
	// Only a path that does not exist is evidence that a container is gone.
	for _, f := range []*failure{
		{code: 0, text: "Instance not found"},
		{code: 500, text: "Instance not found"},
		{code: 404, text: "Project not found"},
		{code: 404, text: "Storage volume not found", operation: true},
	} {
		if notFound(f) {
			t.Errorf("%d %q is taken for a path that does not exist", f.code, f.text)
		}
	}
}
