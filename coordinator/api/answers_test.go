package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// strict forbids what a schema does not name, in all objects of the description that say what they
// have.
func strict(schema any) {
	switch of := schema.(type) {
	case map[string]any:
		_, has := of["properties"]
		if _, says := of["additionalProperties"]; has && !says {
			of["additionalProperties"] = false
		}
		for _, part := range of {
			strict(part)
		}
	case []any:
		for _, part := range of {
			strict(part)
		}
	}
}

// eventful is a shard in which every part of a document has something to say.
func (d *desk) eventful() {
	d.t.Helper()
	now, least := time.Now().UTC(), 1
	d.put(d.keys.Shard(), store.Shard{
		Schema: store.Schema, ID: "x1", Name: "test", Created: now.Add(-time.Hour), Settings: store.DefaultShardSettings(),
		Hold:   &store.Hold{At: now, By: "ada", Why: "a try"},
		Freeze: &store.Freeze{From: now, To: now.Add(time.Hour), By: "ada", Why: "fair"},
	})
	d.put(d.keys.Of(store.KindLeader)+"a", store.Leader{Schema: store.Schema, Replica: "coord-a", Since: now})
	d.group("web", 3)
	g := store.DefaultGroup()
	g.Name, g.Provider, g.Size = "web", "process", 3
	g.Workload.Run = []string{"./web"}
	g.Windows = []store.Window{{From: "22:00", For: store.Duration(time.Hour)}}
	g.Scale = &store.ScaleSpec{Min: &least, Max: 9, Targets: []store.ScaleTarget{{Metric: store.MetricCPU, Value: 50}}}
	g.Complete()
	d.put(d.keys.Status("web"), store.Status{
		Schema: store.Schema, Group: "web", Accepted: &g, AcceptedRevision: 1, State: store.GroupStarted, Health: 66,
		Since: now, Phases: map[store.Phase]int{store.Running: 3}, Verdicts: map[store.Verdict]int{store.Lost: 1},
		Rollout: &store.Rollout{
			Template: "t2", Since: now, Progress: now, Done: 1, Total: 3, Canary: 2, Canaries: []int{0},
			Stalls: &store.Timer{Start: now, For: store.Duration(time.Minute)},
			Rests:  &store.Timer{Start: now, For: store.Duration(time.Minute)},
		},
		Scale: &store.Scale{
			Size: 3, Wish: 5, Asks: 5, Stays: store.ScaleWindowUp, At: now,
			Numbers: []store.ScaleNumber{{Metric: store.MetricCPU, Value: 90, Target: 50, Fresh: 3, Of: 3, Wish: 5}},
		},
		Storm: &store.Storm{Since: now, Lost: 2, Of: 3},
		Blocked: []store.Blocked{
			{
				Rule: "ROLL-6", Kind: store.BlockedByWindow, Work: store.WorkRoll, Turn: true,
				Of: store.BlockedFacts{Group: "web", Opens: now.Add(time.Hour)},
			},
			{Rule: "SAFE-2", Kind: store.BlockedByStorm, Work: store.WorkReplace, Instance: "web-1-a"},
		},
	})
	for slot := range 3 {
		id := fmt.Sprintf("web-%d-a", slot)
		i := store.Instance{
			Schema: store.Schema, ID: id, Group: "web", Slot: slot, Phase: store.Running, Managed: true, Since: now,
			Created: now.Add(-time.Minute), Template: "t1", Spec: g.InstanceSpec(), Zone: "a", Address: "10.0.0.1",
			Last: store.Decision{Rule: "REC-3", What: "created"},
		}
		if slot == 0 {
			i.Protected = store.ProtectRemoval
			i.Protection = &store.Protection{
				By: "ada", Why: "look", Ends: &store.Timer{Start: now, For: store.Duration(time.Hour)},
			}
		}
		d.put(d.keys.Instance(id), i)
		d.put(d.keys.Alive(id), store.Alive{
			Schema: store.Schema, Instance: id, BootID: "b", Epoch: 1, Replica: "coord-a", State: store.StreamOpen, Since: now,
		})
		d.put(d.keys.Report(id), store.Report{
			Schema: store.Schema, Instance: id, BootID: "b", Healthy: slot != 1, Why: "http:80: 500", Received: now,
			Host: store.HostReport{CPUPercent: 20, MemoryPercent: 30},
		})
	}
	slot := 2
	for n, e := range []store.JournalEntry{
		{
			Rule: "AUTO-1", What: "size 3", Cause: store.Cause{
				Kind: store.CauseLoad, Count: 2, Limit: 3, For: store.Duration(time.Second),
			},
		},
		{Rule: "REC-3", What: "requested", Instance: "web-2-a", Slot: &slot, To: store.Pending},
		{Rule: "DET-9", What: "healthy", Instance: "web-2-a", Slot: &slot, From: store.Checking, To: store.Running},
		{
			Rule: review.RuleDrill, What: "drill", Instance: "web-2-a", Slot: &slot,
			Cause: store.Cause{Kind: store.CauseOrder, By: "ada"},
			Facts: []store.Fact{{Kind: store.FactRequest, Name: "order1", Text: string(store.DrillAgent)}},
		},
		{Kind: store.EntryVerdict, Rule: "DET-3", What: "suspect", Instance: "web-2-a", Slot: &slot, Verdict: store.Suspect},
		{Kind: store.EntryVerdict, Rule: "DET-5", What: "live", Instance: "web-2-a", Slot: &slot, Verdict: store.Live},
	} {
		e.Schema, e.By, e.Group = store.Schema, "coord-a", "web"
		e.At = now.Add(time.Duration(n-60) * time.Second)
		d.put(d.keys.Event(e.At, fmt.Sprint(n)), e)
	}
	for d.h.Views.Sample(now.Add(-2 * time.Minute)); len(d.h.Views.Load("web-0-a", now)) == 0; {
		d.h.Views.Sample(now) // it has read nothing before
	}
	for moved := d.h.Journal.Moved(); d.journalled() < 6; moved = d.h.Journal.Moved() {
		<-moved
	}
}

func (d *desk) journalled() (n int) {
	d.h.Journal.View(func(entries []journal.Entry, _ time.Time) { n = len(entries) })
	return n
}

// Every route answers what the description says: no field of another type, and none that it does
// not name. Errors are problems.
//
// proves WEB-4
func TestAnswersFitTheDescription(t *testing.T) {
	d := newDesk(t)
	d.eventful()
	const at = "https://leasehold/openapi.json"
	text, err := json.Marshal(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	all, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	strict(all)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(at, all); err != nil {
		t.Fatal(err)
	}
	fits := func(what, pointer, body string) {
		t.Helper()
		schema, err := c.Compile(at + "#" + pointer)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err == nil {
			err = schema.Validate(value)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", what, err, body)
		}
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	fill := strings.NewReplacer("{group}", "web", "{instance}", "web-0-a", "{zone}", "a", "actions/{action}",
		"actions/restart")
	bodies := map[string]string{
		"/size": `{"size": 4}`, "/hold": `{"why": "x"}`, "/freeze": `{"why": "x", "until": "2099-01-01T00:00:00Z"}`,
		"/protection": `{}`, "/drills": `{"kind": "machine"}`, "/adoption": `{}`, "/web": `{}`,
	}
	for path, operations := range OpenAPI()["paths"].(object) {
		for _, method := range slices.Sorted(maps.Keys(operations.(object))) {
			body, asked := "", strings.TrimPrefix(fill.Replace(path), Root)
			for end, has := range bodies {
				if method != "get" && strings.HasSuffix(asked, end) {
					body = has
				}
			}
			what := method + " " + path
			code, answered, _ := d.ask(strings.ToUpper(method), asked, body, "If-Match", `"7"`, "Content-Type",
				"application/json")
			if code != http.StatusOK && code != http.StatusAccepted {
				t.Errorf("%s: %d %s", what, code, answered)
				continue
			}
			pointer := "/paths/" + escape.Replace(path) + "/" + method + "/responses/"
			fits(what, pointer+fmt.Sprint(code)+"/content/application~1json/schema", answered)
			_, refused, _ := d.ask(strings.ToUpper(method), asked, "{", "If-Match", "x")
			if strings.Contains(refused, `"title"`) {
				fits(what+", refused", pointer+"default/content/application~1problem+json/schema", refused)
			}
		}
	}
}
