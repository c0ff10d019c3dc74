package groupfile

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold/leasehold/agent/workload"
	"github.com/leasehold/leasehold/store"
)

// A spec is refused for its placeholders exactly if the agent could not expand them.
func TestPlaceholdersAreReadAsTheAgentReadsThem(t *testing.T) {
	const seed = 1
	chance := rand.New(rand.NewPCG(seed, seed))
	parts := []string{"$", "$", "{", "{", "}", "a", "b", "${a}", "$${", " "}
	refused := 0
	for range 20_000 {
		text := ""
		for range chance.IntN(8) {
			text += parts[chance.IntN(len(parts))]
		}
		_, err := workload.ExpandText("run[0]", text, map[string]string{"a": "x"}, nil)
		names, open := store.Placeholders(text)
		fits := open == ""
		for _, name := range names {
			fits = fits && name == "a"
		}
		if fits != (err == nil) {
			t.Errorf("%q (seed %d): placeholders %q, open %q; the agent says %v", text, seed, names, open, err)
		}
		if err != nil {
			refused++
		}
	}
	if refused < 1000 {
		t.Errorf("only %d texts were refused", refused)
	}
}
