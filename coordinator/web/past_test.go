package web_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// proves WEB-1: a page of the past shows what was so then, and what was known then
func TestPagesOfThePast(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 2)
	slot := 0
	life := []struct {
		at time.Duration
		e  store.JournalEntry
	}{
		{-50 * time.Minute, store.JournalEntry{Instance: "web-0-old", To: store.Pending, What: "requested", Rule: "REC-3"}},
		{-49 * time.Minute, store.JournalEntry{
			Instance: "web-0-old", From: store.Pending, To: store.Running, What: "healthy",
			Rule: "DET-9",
		}},
		{-20 * time.Minute, store.JournalEntry{
			Instance: "web-0-old", Kind: store.EntryVerdict, Verdict: store.Suspect, What: "suspect", Why: "its stream broke",
			Rule: "DET-3",
		}},
		{-19 * time.Minute, store.JournalEntry{
			Instance: "web-0-old", Kind: store.EntryVerdict, Verdict: store.Dead, What: "dead", Why: "the provider says crashed",
			Rule: "DET-4",
		}},
		{-18 * time.Minute, store.JournalEntry{
			Instance: "web-0-old", From: store.Running, To: store.Deleting, What: "deleting", Rule: "DET-4", Verdict: store.Dead,
			Replacement: "web-0-a",
		}},
		{-18*time.Minute + time.Second, store.JournalEntry{
			Instance: "web-0-a", To: store.Pending, What: "requested",
			Rule: "REC-3",
		}},
		{-17 * time.Minute, store.JournalEntry{Instance: "web-0-old", What: "gone", Rule: "SAFE-8"}},
		{-16 * time.Minute, store.JournalEntry{
			Instance: "web-0-a", From: store.Pending, To: store.Running, What: "healthy",
			Rule: "DET-9",
		}},
	}
	for _, l := range life {
		l.e.Group, l.e.Slot = "web", &slot
		x.tell(l.at, l.e)
	}
	x.shows("/events", "gone")
	cell := regexp.MustCompile(`<li id="s-0">(.*?)</li>`)
	kind := regexp.MustCompile(`href="/i/([^"?]+)[?]at=[^"]+" class="([a-z]+)"`)
	for _, c := range []struct {
		ago  time.Duration
		want string
	}{
		{51 * time.Minute, ""},
		{50*time.Minute - time.Second, "web-0-old starting"},
		{30 * time.Minute, "web-0-old live"},
		{20*time.Minute - time.Second, "web-0-old suspect"},
		{19*time.Minute - time.Second, "web-0-old dead"},
		{18*time.Minute - 2*time.Second, "web-0-a starting, web-0-old dead"},
		{17*time.Minute - time.Second, "web-0-a starting"},
		{10 * time.Minute, "web-0-a live"},
	} {
		path := "/g/web?at=" + url.QueryEscape(x.now.Add(-c.ago).Format(time.RFC3339Nano))
		code, body, _ := x.get(path)
		var shown []string
		if m := cell.FindStringSubmatch(body); m != nil {
			for _, k := range kind.FindAllStringSubmatch(m[1], -1) {
				shown = append(shown, k[1]+" "+k[2])
			}
		}
		if len(shown) == 2 && shown[0] > shown[1] {
			shown[0], shown[1] = shown[1], shown[0]
		}
		if got := strings.Join(shown, ", "); code != 200 || got != c.want {
			t.Errorf("%s ago: %d: %q, want %q", c.ago, code, got, c.want)
		}
		if !strings.Contains(body, `id="past"`) || !strings.Contains(body, `data-live=""`) {
			t.Errorf("%s ago: the page does not say that it is of the past, or is live", c.ago)
		}
		if c.ago == 30*time.Minute && (strings.Contains(body, "its stream broke") || !strings.Contains(body, `rel="next"`)) {
			t.Error("30m ago: it shows what was not known yet, or no way on")
		}
	}
	for _, c := range []struct {
		ago       time.Duration
		has, lack string
		code      int
	}{
		{30 * time.Minute, "web-0-old is live", "its stream broke", 200},
		{20*time.Minute - time.Second, "web-0-old is suspect", "crashed", 200},
		{10 * time.Minute, "web-0-old was DELETED", "is live", 200},
		{51 * time.Minute, "knows nothing of it at that time", "<b>requested", 404},
	} {
		code, body, _ := x.get("/i/web-0-old?at=" + url.QueryEscape(x.now.Add(-c.ago).Format(time.RFC3339Nano)))
		if code != c.code || !strings.Contains(body, c.has) || strings.Contains(body, c.lack) ||
			!strings.Contains(body, `id="past"`) || !strings.Contains(body, `data-live=""`) {
			t.Errorf("%s ago the instance: %d:\n%s", c.ago, code, body)
		}
	}
	_, body, _ := x.get(fmt.Sprintf("/g/web?show=live&at=%d", x.now.Add(-30*time.Minute).Unix())) // as the slider asks
	for _, want := range []string{
		`class="live" aria-label="web-0-old`, `name="show" value="live"`,
		fmt.Sprintf(`type="range" name="at" min="%d"`, x.now.Add(-50*time.Minute).Unix()),
	} {
		if !strings.Contains(body, want) {
			t.Errorf("by the slider: %q is missing:\n%s", want, body)
		}
	}
	if _, body, _ := x.get("/g/web?at=yesterday"); strings.Contains(body, `id="past"`) {
		t.Error("a moment that cannot be read is not the present")
	}
}

// proves WEB-1: the time of an entry leads to its group as it was then, and links keep odd names
func TestLinksHoldWhatTheySay(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 1)
	x.tell(-20*time.Minute, store.JournalEntry{Group: "web", Instance: "web-0-a", What: "looked at", Rule: "REC-3"})
	body := x.shows("/g/web", "looked at")
	links := regexp.MustCompile(`<a href="([^"]+)" title="the group as it was then">`).FindStringSubmatch(body)
	if links == nil {
		t.Fatalf("no entry has a link:\n%s", body)
	}
	code, then, _ := x.get(html.UnescapeString(links[1]))
	if title := x.now.Add(-20 * time.Minute).UTC().Format("<title>web at 01-02 15:04:05"); code != 200 ||
		!strings.Contains(then, title) {
		t.Errorf("%s: %d: the page is not %s:\n%s", links[1], code, title, then)
	}
	_, body, _ = x.get("/g/a%20%25")
	links = regexp.MustCompile(`<a href="(/events[?][^"]+)">`).FindStringSubmatch(body)
	if links == nil {
		t.Fatalf("a group that is gone has no link to the journal:\n%s", body)
	}
	if at, err := url.Parse(html.UnescapeString(links[1])); err != nil || at.Query().Get("group") != "a %" {
		t.Errorf("%s does not name the group %q: %v", links[1], "a %", err)
	}
}

// proves WEB-1: a column of the time axis selects the entries below it
func TestTimeAxis(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 1)
	for n, rule := range []string{"DET-3", "HEAL-2", "ROLL-1", "LB-2", "OTHER-1"} {
		x.tell(-time.Duration(10*n+5)*time.Minute, store.JournalEntry{
			Group: "web", Instance: "web-0-a", Rule: rule, What: fmt.Sprint("entry ", n),
		})
	}
	for n, cause := range []store.Cause{{Kind: store.CauseOrder, By: "ada"}, {Kind: store.CauseSpec, Count: 1}} {
		x.tell(-time.Duration(20*n+10)*time.Minute, store.JournalEntry{
			Group: "web", Rule: "REC-13", What: "by ada", Cause: cause,
		})
	}
	x.shows("/g/web?span=1h", "by ada")
	body := x.shows("/g/web?span=1h", "entry 4")
	for _, lane := range []string{"detect", "heal", "roll", "traffic", "operator", "other"} {
		if !strings.Contains(body, "1 in lane "+lane) {
			t.Errorf("no column in lane %s", lane)
		}
	}
	link := regexp.MustCompile(`<a id="t-[^"]+" href="([^"]+)" aria-label="1 in lane heal`).FindStringSubmatch(body)
	if link == nil {
		t.Fatal("the column is no link")
	}
	_, body, _ = x.get(strings.ReplaceAll(link[1], "&amp;", "&"))
	if !strings.Contains(body, "entry 1") || strings.Contains(body, "entry 0") || strings.Contains(body, "entry 2") {
		t.Errorf("%s does not select entry 1 alone", link[1])
	}
	if _, body, _ := x.get("/g/web?span=15m"); strings.Contains(body, "lane heal") {
		t.Error("the span is not kept")
	}
}
