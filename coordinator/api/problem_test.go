package api_test

import (
	"encoding/json"
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
		Next: story.Next{
			{Text: "leasehold explain web", Kind: story.Inspection},
			{Text: "leasehold group retry web", Kind: story.Command},
		},
	}}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%s\n%s", err, text)
	}
	if got.Problems[0].Next.String() != was.Problems[0].Next.String() {
		t.Errorf("next: %q", got.Problems[0].Next)
	}
}
