package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A freeze is written into the shard with who ordered it and until when, is shown by status while
// it lasts and before, and ends by order.
//
// proves ROLL-6
func TestFreeze(t *testing.T) {
	w := newWorld(t)
	w.put(store.KindShard, "", store.Shard{Schema: store.Schema, ID: "x1", Name: "default"})
	freeze := func() *store.Freeze {
		t.Helper()
		kv, err := w.st.Get(t.Context(), w.keys.Shard())
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Decode[store.Shard](kv)
		if err != nil {
			t.Fatal(err)
		}
		return v.Record.Freeze
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"freeze"}, "why: missing"},
		{[]string{"freeze", "sale"}, "until: missing"},
		{[]string{"freeze", "sale", "--until", "tomorrow"}, `--until: "tomorrow" is not a time`},
		{[]string{"freeze", "sale", "--until", noon.Format(time.RFC3339)}, "is in the past"},
		{[]string{"freeze", "sale", "--for=-1h"}, `--for: "-1h": must be a duration above 0, such as 30m, 8h or 7d`},
		{[]string{"freeze", "sale", "--for", "0s"}, `--for: "0s": must be a duration above 0`},
		{
			[]string{"freeze", "sale", "--until", "2099-01-01T00:00:00Z", "--from", "2099-01-01T01:00:00+01:00"},
			"is not before the end",
		},
		{
			[]string{"freeze", "sale", "--from", noon.Add(-2 * time.Hour).Format(time.RFC3339), "--for", "2h"},
			"would have ended " + noon.Format(time.RFC3339),
		},
		{[]string{"freeze", "sale", "--end"}, "--end takes nothing beside it"},
	} {
		if code, _, stderr := w.run(c.args...); code != Usage || !strings.Contains(stderr, c.want) || freeze() != nil {
			t.Errorf("%q: exit %d: %s", c.args, code, stderr)
		}
	}
	if out := w.must("freeze", "--end"); !strings.Contains(out, "unchanged: it is not frozen") {
		t.Errorf("printed %s", out)
	}
	w.must("freeze", "black friday", "--for", "72h")
	if f := freeze(); f == nil || !f.From.Equal(noon) || !f.To.Equal(noon.Add(72*time.Hour)) || f.Why != "black friday" ||
		f.By == "" {
		t.Errorf("the freeze is %+v", f)
	}
	_, out, _ := w.run("status")
	if !strings.Contains(out, "ROLL-6") || !strings.Contains(out,
		"frozen until "+noon.Add(72*time.Hour).Format(time.RFC3339)) ||
		!strings.Contains(out, "black friday") ||
		!strings.Contains(out, "leasehold freeze --end") {
		t.Errorf("status:\n%s", out)
	}
	from := noon.Add(time.Hour)
	w.must("freeze", "move", "--from", from.Format(time.RFC3339), "--for", "2h")
	if f := freeze(); !f.From.Equal(from) || !f.To.Equal(from.Add(2*time.Hour)) {
		t.Errorf("the freeze is %+v", f)
	}
	if _, out, _ := w.run("status"); !strings.Contains(out, "freeze from "+from.Format(time.RFC3339)) {
		t.Errorf("status:\n%s", out)
	}
	w.must("freeze", "--end")
	if freeze() != nil {
		t.Errorf("the freeze is %+v", freeze())
	}
}
