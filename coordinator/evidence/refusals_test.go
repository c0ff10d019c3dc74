package evidence_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold/leasehold/coordinator/evidence"
	"github.com/leasehold/leasehold/coordinator/plan"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/store"
)

// What a provider refuses to all of a kind stands until it makes one, or says something else of
// one; an error without a meaning says nothing. It is no failure of an instance, and has every
// group planned that wants machines of the provider.
//
// proves PROV-5
func TestRefusals(t *testing.T) {
	quota := &provider.Error{Kind: provider.Quota, Message: "40 of 40"}
	expired := &provider.Error{Kind: provider.Credentials, Message: "expired"}
	open := errors.New("connection reset")
	ofLarge, ofSmall, ofAll := plan.Refused{Provider: "mem", Type: "large"}, plan.Refused{Provider: "mem", Type: "small"},
		plan.Refused{Provider: "mem"}
	type step struct {
		of   string // the instance's type
		err  error
		want []plan.Refused
	}
	for name, steps := range map[string][]step{
		"a quota": {{"large", quota, []plan.Refused{ofLarge}}},
		"a quota of each": {
			{"large", quota, []plan.Refused{ofLarge}},
			{"small", quota, []plan.Refused{ofLarge, ofSmall}},
		},
		"raised":                    {{"large", quota, []plan.Refused{ofLarge}}, {"large", nil, nil}},
		"of another":                {{"large", quota, []plan.Refused{ofLarge}}, {"small", nil, []plan.Refused{ofLarge}}},
		"credentials":               {{"large", expired, []plan.Refused{ofAll}}},
		"mended":                    {{"large", expired, []plan.Refused{ofAll}}, {"small", nil, nil}},
		"mended, and no room":       {{"large", expired, []plan.Refused{ofAll}}, {"small", provider.ErrCapacity, nil}},
		"mended, and a quota":       {{"large", expired, []plan.Refused{ofAll}}, {"large", quota, []plan.Refused{ofLarge}}},
		"a quota, then credentials": {{"large", quota, []plan.Refused{ofLarge}}, {"large", expired, []plan.Refused{ofAll}}},
		"nothing is known":          {{"large", quota, []plan.Refused{ofLarge}}, {"large", open, []plan.Refused{ofLarge}}},
		"nothing is refused":        {{"large", open, nil}, {"large", provider.ErrCapacity, nil}, {"large", nil, nil}},
		"again":                     {{"large", quota, []plan.Refused{ofLarge}}, {"large", quota, []plan.Refused{ofLarge}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			recs := map[string]store.Instance{}
			for _, of := range []string{"large", "small"} {
				rec := w.run(of, of+"-0")
				rec.Spec.Template.InstanceType = of
				recs[of] = rec
			}
			waiting := w.run("waiting", "waiting-0")
			waiting.Phase = store.Creating
			w.put(keys.Instance("waiting-0"), waiting)
			w.lead()
			for i, s := range steps {
				w.evidence.Created(recs[s.of], w.now, provider.Machine{}, open)
				w.takeAll()
				before := w.evidence.Snapshot(w.content, nil).Refusals
				w.pass(time.Second)
				w.evidence.Created(recs[s.of], w.now, provider.Machine{}, s.err)
				dirty := w.evidence.TakeDirty(1<<40, w.now)
				got := w.evidence.Snapshot(w.content, nil).Refusals
				if len(got) != len(s.want) {
					t.Fatalf("step %d: refused are %v, want %v", i, got, s.want)
				}
				for _, of := range s.want {
					r, refused := got[of]
					if !refused {
						t.Fatalf("step %d: refused are %v, want %v", i, got, s.want)
					}
					if at := r.Until.Sub(w.now); s.err != nil && r.Why == s.err.Error() && before[of] != r && at != 20*time.Second {
						t.Errorf("step %d: tried again after %s", i, at)
					}
				}
				calls := w.instance(s.of, s.of+"-0").Calls
				refused := errors.Is(s.err, provider.ErrQuota) || errors.Is(s.err, provider.ErrCredentials)
				if refused && (calls.Problem != "" || !calls.AbsentFrom.Equal(w.now.Add(time.Minute+time.Second))) {
					t.Errorf("step %d: a refusal counts against the instance: %+v", i, calls)
				}
				// The group that waits is planned where something has changed.
				want := fmt.Sprintf("[%s]", s.of)
				if refused || len(before) != len(got) {
					want = fmt.Sprintf("[%s waiting]", s.of)
				}
				if fmt.Sprint(dirty) != want {
					t.Errorf("step %d: to be planned are %v, want %s", i, dirty, want)
				}
			}
		})
	}
	for _, err := range []error{quota, expired} {
		if !evidence.NothingMade(err) {
			t.Errorf("%v does not prove that nothing was made", err)
		}
	}
	if evidence.NothingMade(nil) {
		t.Error("a success proves that nothing was made")
	}
}
