package scenario

import (
	"regexp"
	"strings"
	"testing"
)

// endings are the timeline's entries at the end of a lasting event, which are missing if it is for
// good.
var endings = map[string]struct{ fields, after, shows string }{
	"lost_leases": {"percent: 60", "", `(?m)^00:05.* is healthy again`},
	"freeze":      {"percent: 60", "", `(?m)^00:05.* is healthy again`},
	"unhealthy":   {"percent: 100", "", `(?m)^00:05.* is healthy again`},
	"lose_zone":   {"zone: a", "- {at: 6m, kill: {count: 3}}\n", `(?m)^00:06.* machine made in zone a`},
	"no_capacity": {"", "- {at: 4m, kill: {}}\n", `(?m)^00:05.* machine made`},
	"no_spot": {
		"", "- {at: 3m1s, apply: spot.yaml}\n- {at: 4m, kill: {percent: 100}}\n",
		`(?m)^00:05.* machine made`,
	},
	"bad_template": {"group: web", "", `(?m)^00:05.* is healthy again`},
	"lost_answers": {"percent: 100", "- {at: 4m, kill: {}}\n", `(?m)^00:05.* machine made`},
	"pause":        {"", "- {at: 4m, kill: {}}\n", `(?m)^00:05.* machine made`},
	"stop":         {"", "", `(?m)^00:05.* machine made`},
	"hold":         {"", "- {at: 4m, kill: {}}\n", `(?m)^00:05.* machine made`},
	"no_load": {
		"percent: 100", "- {at: 3m1s, apply: scaled.yaml}\n- {at: 3m2s, load: {cpu: 550}}\n",
		`(?m)^00:0[5-8].* AUTO-1 .*size 6 ->`,
	},
	"no_number": {
		"from: queue", "- {at: 1s, apply: queued.yaml}\n- {at: 3m2s, number: {from: queue, value: 900}}\n",
		`(?m)^00:05.* AUTO-1 .*size 6 ->`,
	},
	"evacuate": {"zone: a", "", `(?m)^00:05:00 .*zone a may be used again`},
}

func TestWhatLastsEnds(t *testing.T) {
	for _, k := range Kinds() {
		for _, f := range k.Fields() {
			if _, there := endings[k.Name]; f.Name == "for" && f.Default == forGood && !there {
				t.Errorf("no test of whether %s ends", k.Name)
			}
		}
	}
	for kind, x := range endings {
		t.Run(kind, func(t *testing.T) {
			text := func(lasts string) string {
				return "length: 9m\nevents:\n- {at: 3m, " + kind + ": {" + strings.Trim(x.fields+", "+lasts, ", ") +
					"}}\n" + x.after
			}
			shows := regexp.MustCompile(x.shows)
			if with := lines(play(t, text("for: 2m"))); !shows.MatchString(with) {
				t.Errorf("%s is not in\n%s", x.shows, with)
			}
			if without := lines(play(t, text(""))); shows.MatchString(without) {
				t.Errorf("%s is there though it is for good:\n%s", x.shows, without)
			}
		})
	}
}
