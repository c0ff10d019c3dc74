//go:build nightly

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// cloudPage is a host of a newcomer who has nothing but the page of a provider, and follows it.
type cloudPage struct {
	*guideHosts
	text  string
	steps []step
	began time.Time
}

// newCloudPage reads a page as its reader adapts it: each edit is a text of the page and what it is
// here. All of them must be on the page.
func newCloudPage(t *testing.T, name string) *cloudPage {
	t.Helper()
	file := filepath.Join("..", "..", "docs", "providers", name+".md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &cloudPage{guideHosts: newGuideHosts(t, "a"), text: string(text), steps: stepsOf(t, file)}
	p.flags = []string{"--machines", p.machines}
	hosts, err := os.ReadFile(filepath.Join(p.dir, "hosts"))
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "hosts"), append(hosts, cloudAddress+" cloud.example\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// adapt replaces what the page says with what it is here, in its commands and files.
func (p *cloudPage) adapt(edits map[string]string) {
	p.t.Helper()
	for was, ok := range edits {
		if !strings.Contains(p.text, was) {
			p.t.Fatalf("the page does not say %q", was)
		}
		p.text = strings.ReplaceAll(p.text, was, ok)
		for i, s := range p.steps {
			p.steps[i].command = strings.ReplaceAll(s.command, was, ok)
			for n, line := range s.prints {
				p.steps[i].prints[n] = strings.ReplaceAll(line, was, ok)
			}
		}
	}
}

// write writes the page's file of that number, from 0.
func (p *cloudPage) write(number int, path string) {
	p.t.Helper()
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(p.text, -1)
	if err := os.WriteFile(path, []byte(blocks[number][1]), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// upTo takes the next commands of the page, up to one with that beginning.
func (p *cloudPage) upTo(command string) []step {
	p.t.Helper()
	at := slices.IndexFunc(p.steps, func(s step) bool { return strings.HasPrefix(s.command, command) })
	if at < 0 {
		p.t.Fatalf("the page has no further command %q", command)
	}
	out := p.steps[:at]
	p.steps = p.steps[at:]
	return out
}

// records are the group's instances, as a command shows them; nil if it fails.
func (p *cloudPage) records() (all []store.Instance) {
	out, err := p.on("a", "leasehold", "instance", "list", "web", "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &all) != nil {
		return nil
	}
	return all
}

// fleet are the instances of the group that the page makes, all healthy; nil until they are.
func (p *cloudPage) fleet() (ids []string) {
	all := p.records()
	for _, i := range all {
		if i.Phase != store.Running || len(all) != 3 {
			return nil
		}
		ids = append(ids, i.ID)
	}
	slices.Sort(ids)
	return ids
}

// eventually is await for what is asked of commands, which cost time.
func (p *cloudPage) eventually(what string, condition func() bool) time.Duration {
	p.t.Helper()
	var last time.Time
	return p.await(what, func() bool {
		if time.Since(last) < poll {
			return false
		}
		defer func() { last = time.Now() }()
		return condition()
	})
}

// heals causes a fault in the machine of one instance, and waits until another one has its place by
// this rule. The others stay.
func (p *cloudPage) heals(what, rule string, harm func(id string)) {
	p.t.Helper()
	before := p.fleet()
	victim := before[0]
	began := time.Now()
	harm(victim)
	var decided time.Duration
	took := p.eventually("another machine for one that was "+what, func() bool {
		if decided == 0 && slices.ContainsFunc(p.records(), func(i store.Instance) bool {
			return i.Replaces == victim || i.ID == victim && i.Phase == store.Deleting
		}) {
			decided = time.Since(began)
		}
		now := p.fleet()
		return now != nil && !slices.Contains(now, victim)
	})
	out, err := p.on("a", "leasehold", "explain", victim).Output()
	if err != nil || !strings.Contains(string(out), rule) {
		p.t.Errorf("%s: not replaced by %s: %v\n%s", what, rule, err, out)
	}
	for _, id := range before[1:] {
		if !slices.Contains(p.fleet(), id) {
			p.t.Errorf("%s: %s was replaced as well", what, id)
		}
	}
	p.t.Logf("%s: replacement asked for after %s, healthy after %s (%s)", what, decided.Round(100*time.Millisecond),
		took.Round(100*time.Millisecond), rule)
}

// applied follows the page from the group on, and waits for it.
func (p *cloudPage) applied() {
	p.t.Helper()
	began := time.Now()
	p.follow(p.steps[:1])
	p.eventually("three healthy machines", func() bool { return p.fleet() != nil })
	p.t.Logf("healthy %s after apply, %s after the page's first command", time.Since(began).Round(100*time.Millisecond),
		time.Since(p.began).Round(100*time.Millisecond))
	p.follow(p.steps[1:])
}

// ends deletes the group, and checks that nothing is left in the cloud.
func (p *cloudPage) ends(left func() []string) {
	p.t.Helper()
	gone := p.on("a", "leasehold", "group", "delete", "web", "--confirm", "web", "--wait")
	if out, err := gone.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	p.eventually("nothing being left", func() bool { return len(left()) == 0 })
	out, err := p.on("a", "leasehold", "status").Output()
	if err != nil || !strings.Contains(string(out), "no problems") {
		p.t.Errorf("status at the end: %v\n%s", err, out)
	}
}
