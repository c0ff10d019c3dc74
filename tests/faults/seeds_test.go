package faults

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/tests/faults/cluster"
	"github.com/leasehold/leasehold/tests/faults/trouble"
)

var (
	seedFlag    = flag.Uint64("seed", 0, "play this one run; 0: as many as -seeds says")
	firstFlag   = flag.Uint64("first", 1, "the first seed of many")
	seedsFlag   = flag.Int("seeds", 4, "how many runs to play")
	troubleFlag = flag.Int("troubles", 10, "how many troubles each run has")
	onlyFlag    = flag.String("only", "", "kinds of troubles that happen, with commas in between; none: all")
	withoutFlag = flag.String("without", "", "kinds of troubles that do not happen")
	serversFlag = flag.Bool("servers", false, "the clusters are hosts of leasehold server")
	oftenFlag   = flag.String("often", "", "kinds of troubles that are half of all")
)

// within is the time in which the troubles of a run begin.
const within = 25 * time.Second

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// Ten troubles at a time, chosen and ordered by a seed: nothing is lost, doubled or wrongly
// destroyed, and all comes right in the end.
//
// proves SAFE-1, SAFE-2, SAFE-3, SAFE-4, SAFE-5, SAFE-7, SAFE-8, SAFE-10, SAFE-11, SAFE-13,
// SAFE-14, SAFE-15, SAFE-16, DET-4, DET-17, HEAL-2, HEAL-3, HEAL-7, REC-7, REC-13, REC-15, ELECT-3
func TestSeeds(t *testing.T) {
	t.Parallel()
	if *seedFlag != 0 {
		play(t, *seedFlag)
		return
	}
	for i := range *seedsFlag {
		seed := *firstFlag + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			play(t, seed)
		})
	}
}

func play(t *testing.T, seed uint64) {
	t.Helper()
	plan, err := trouble.Make(seed,
		trouble.Terms{
			Troubles: *troubleFlag, Within: within, Only: names(*onlyFlag), Without: names(*withoutFlag),
			Often: names(*oftenFlag), Servers: *serversFlag,
		})
	if err != nil {
		t.Fatal(err)
	}
	again := fmt.Sprintf("make faults SEED=%d", seed)
	if *serversFlag {
		again += " SERVERS=1"
	}
	if *onlyFlag != "" || *withoutFlag != "" || *oftenFlag != "" || *troubleFlag != 10 {
		again = fmt.Sprintf("go test ./tests/faults -count=1 -v -run '^TestSeeds$' -seed %d -troubles %d -only '%s' "+
			"-without '%s' -often '%s' -servers=%t", seed, *troubleFlag, *onlyFlag, *withoutFlag, *oftenFlag, *serversFlag)
	}
	t.Logf("seed %d:\n%s", seed, plan)
	c := cluster.New(t, cluster.Config{
		Programs: built, Again: again, Disks: true, Servers: *serversFlag, Groups: cluster.Usual(),
	})
	c.Begin()
	if err := trouble.Play(t.Context(), c, plan); err != nil {
		t.Errorf("a trouble could not be undone: %v", err)
	}
	c.Finish()
}
