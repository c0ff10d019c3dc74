package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/api"
	"github.com/leasehold/leasehold/coordinator/story"
)

// A client in Go reads the problems that a coordinator writes.
//
// proves WEB-4
func TestAClientReadsProblems(t *testing.T) {
	var was, got api.Group
	was.Problems = []story.Problem{{
		About: "web", Rule: "FLAP-3", What: "2 slots are given up",
		Remedies: story.Inspect("leasehold explain web").Or(story.Run("leasehold group retry web")),
	}}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s\n%s", err, text)
	}
	if !slices.Equal(got.Problems[0].Remedies, was.Problems[0].Remedies) {
		t.Errorf("remedies: %q", got.Problems[0].Remedies)
	}
	if want := `"remedies":[{"kind":"inspection","text":"leasehold explain web"},` +
		`{"kind":"command","text":"leasehold group retry web"}]`; !strings.Contains(string(text), want) {
		t.Errorf("%s\nwant %s in it", text, want)
	}
}
