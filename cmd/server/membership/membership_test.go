package membership

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/leasehold/leasehold/tests/tier" // the seed of every day
)

// cluster draws members, some of which do not answer.
func cluster(t *rapid.T) Cluster {
	var c Cluster
	for i := range rapid.IntRange(1, Most).Draw(t, "voters") {
		c = append(c, Member{
			ID: uint64(i + 1), Name: string(rune('a' + i)), Peer: fmt.Sprintf("https://%c:2380", 'a'+i),
			Answers: rapid.Bool().Draw(t, "answers"),
		})
	}
	if rapid.Bool().Draw(t, "learner") {
		c = append(c, Member{
			ID: 99, Name: rapid.SampledFrom([]string{"", "l"}).Draw(t, "name"), Peer: "https://l:2380", Learner: true,
			Answers: rapid.Bool().Draw(t, "answers"), Behind: rapid.Bool().Draw(t, "behind"),
		})
	}
	return c
}

// quorum counts by hand: more than half of the voters answer.
func quorum(c Cluster) bool {
	voters, answer := 0, 0
	for _, m := range c {
		if !m.Learner {
			voters++
			if m.Answers {
				answer++
			}
		}
	}
	return 2*answer > voters
}

// No allowed change loses the quorum, whichever members answer and in whatever order changes come.
// Without a quorum nothing is allowed.
//
// proves DAY-1
func TestNoChangeLosesTheQuorum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := cluster(t)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := quorum(c)
			var r *Refusal
			var what string
			next := append(Cluster{}, c...)
			of := rapid.IntRange(0, len(c)-1).Draw(t, "of")
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				name := rapid.SampledFrom([]string{"a", "b", "x", "y"}).Draw(t, "new")
				peer := "https://" + name + ":2380"
				r, what = c.MayAdd(name, peer), "add "+name
				next = append(next, Member{ID: uint64(100 + len(next)), Name: name, Peer: peer, Learner: true, Behind: true})
			case 1:
				r, what = c.MayPromote(c[of].ID), "promote "+c[of].Label()
				next[of].Learner = false
			case 2:
				r, what = c.MayRemove(c[of].Label()), "remove "+c[of].Label()
				next = next.without(c[of].ID)
			case 3:
				r, what = c.MayReplace(c[of].Label()), "replace "+c[of].Label()
				if r == nil && c[of].Answers && !c[of].Learner {
					t.Fatalf("%s: it answers", what)
				}
				next = next.without(c[of].ID)
			}
			if r != nil {
				if r.What == "" || r.Next == "" || strings.Contains(r.What, "\n") {
					t.Fatalf("%s: refused with %+v", what, r)
				}
				continue
			}
			if !before {
				t.Fatalf("%s: allowed without a quorum of %+v", what, c)
			}
			if !quorum(next) {
				t.Fatalf("%s: loses the quorum of %+v", what, c)
			}
			if n := len(next.Voters()); n < 1 || n > Most {
				t.Fatalf("%s: leaves %d members", what, n)
			}
			c = next
			// In between hosts fail and come back, and learners catch up.
			for i := range c {
				c[i].Answers = rapid.Bool().Draw(t, "answers")
				c[i].Behind = c[i].Learner && c[i].Behind && rapid.Bool().Draw(t, "behind")
			}
		}
	})
}

// What is safe is not refused: a cluster all of whose members answer can shrink to one, and a dead
// member of three can always be replaced.
func TestWhatIsSafeIsAllowed(t *testing.T) {
	up := func(names ...string) (c Cluster) {
		for i, n := range names {
			c = append(c, Member{ID: uint64(i + 1), Name: n, Peer: "https://" + n + ":2380", Answers: true})
		}
		return c
	}
	for c := up("a", "b", "c", "d", "e"); len(c) > 1; c = c.without(c[0].ID) {
		if r := c.MayRemove(c[0].Name); r != nil {
			t.Errorf("of %s: %s", c.Labels(), r.What)
		}
		if r := c.MayReplace(c[0].Name); r == nil {
			t.Errorf("%s is replaced, and answers", c[0].Name)
		}
	}
	three := up("a", "b", "c")
	three[1].Answers = false
	for name, want := range map[string]string{"b": "", "a": "b would not answer", "x": "is not in the cluster"} {
		r := three.MayRemove(name)
		switch {
		case want == "" && r != nil:
			t.Errorf("remove %s: %s", name, r.What)
		case want != "" && r == nil:
			t.Errorf("remove %s: allowed", name)
		}
	}
	if r := three.MayReplace("b"); r != nil {
		t.Errorf("replace b: %s", r.What)
	}
	if r := three.MayRemove("c"); r == nil || !strings.Contains(r.What, "b would not answer, and 2 of the 2 left must") ||
		r.Next != "start leasehold server on b again; if it is gone for good: leasehold server replace b" {
		t.Errorf("remove c beside a dead b: %v", r)
	}
	three[2].Answers = false
	if got := three.NoQuorum(); got != "no quorum: b and c do not answer: 2 of 3 members must" {
		t.Errorf("says %q", got)
	}
	if r := up("a").MayRemove("a"); r == nil || !strings.Contains(r.What, "last member") {
		t.Errorf("remove the last: %v", r)
	}
}
