package plan

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the transcripts show into testdata instead of comparing it")

// Each transcript in testdata is a story: commands, and below ---- what came of them. Instances are
// called by their slot and a letter in the order of their making, so 0a is replaced by 0b; xa is on
// demand, and instances of other groups than web have the group's name in front. The commands:
//
//	group KEY=VALUE…        edit the spec (size, max_expansion, zones=a,b …: see settings)
//	static KEY=VALUE…       put a group into the shard's file
//	override KEY=VALUE…     what an operator says beside it
//	in NAME                 speak of another group from here on
//	settle                  plan until nothing happens any more, and say only how the group is then
//	run DURATION            let time pass, second by second, and tell what is decided
//	skip DURATION           the same in strides from one time at which to look again to the next
//	look · advance          let one second pass · plan once and carry that out
//	plan                    plan once and show the plan, without carrying it out
//	overtake COMMAND…       plan once, let the command happen, then carry the plan out, and tell what
//	                        of it was overtaken
//	kill|lose|cut-off|freeze|return ID…      (or "all") a machine or its stream fails; lose: not
//	                                         listed any more
//	crash ID…                                its machine ends, and its stream seems open for a
//	                                         while
//	reboot ID…                               its machine starts again by itself
//	hide|unhide ID…                          its provider forgets to list it
//	unhealthy|broken|healthy ID…             its checks fail; broken: until its machine is another
//	refuses ID…                              its agent does not do what it is told
//	goodbye KIND ID… · notice DURATION ID… · exit CODE ID…
//	order KIND [ID] [MODE] · evacuate|reopen ZONE
//	extra ID GROUP ZONE · stray ID           a machine without a record · its agent says hello
//	leader [AWAY] · outage · hold · release · spoil · vanish · full ZONE · room ZONE · stale · fresh
//	sick TYPE                                no machine of this instance type gets healthy
//	dumb                                     no new agent registers
//	unmakable TYPE                           the provider refuses this instance type for good
//	wrong CHECK                             a check that fails wherever it is done
//	crashes                                  every workload started from here on fails at once
//	lasts                                    none does any more
//	load [cpu=N] [network=N] [memory=N]      of the group; N is shared, memory is of each instance
//	loadless|loaded ID…                      its agent tells no load, or tells it again
//	hook DURATION|never                      how long a drain hook takes
//	show [all]                               instances, slots and status of the group, or of all
//	records KIND                             what is in etcd
//
// go test ./coordinator/plan -run TestTranscripts -update rewrites the files.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 80 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newStory(t).play(string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("%s tells another story (rewrite it with -update):\n%s", file,
					difference(string(want), got))
			}
		})
	}
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			from := max(0, i-3)
			return fmt.Sprintf("line %d\nwant:\n%s\ngot:\n%s", i+1, strings.Join(w[from:min(len(w), i+8)], "\n"),
				strings.Join(g[from:min(len(g), i+8)], "\n"))
		}
	}
	return ""
}
