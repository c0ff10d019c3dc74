package page

import (
	"fmt"
	"html/template"
	"math/rand/v2"
	"slices"
	"testing"
)

// document is a page in a browser: what the script makes of changes. It knows what HTML stands for
// from the fragments that are sent.
type document struct {
	t     *testing.T
	root  Fragment
	known map[template.HTML]Fragment
}

func (d *document) know(f Fragment) {
	d.known[f.HTML()] = f
	for _, p := range f.Parts {
		d.know(p)
	}
}

// find returns the element of an ID, and the one around it.
func (d *document) find(f *Fragment, id string) (found, around *Fragment, at int) {
	for i := range f.Parts {
		if f.Parts[i].ID == id {
			return &f.Parts[i], f, i
		}
		if found, around, at = d.find(&f.Parts[i], id); found != nil {
			return found, around, at
		}
	}
	return nil, nil, 0
}

func (d *document) remove(id string) (removed Fragment) {
	found, around, at := d.find(&d.root, id)
	if found == nil {
		return Fragment{}
	}
	removed = *found
	around.Parts = slices.Delete(slices.Clone(around.Parts), at, at+1)
	return removed
}

func (d *document) take(c Change) {
	d.t.Helper()
	if c.Gone {
		d.remove(c.ID)
		return
	}
	fresh, sent := d.known[c.HTML]
	if c.HTML != "" && !sent {
		d.t.Fatalf("%s: HTML that is no fragment: %s", c.ID, c.HTML)
	}
	if c.In == "" {
		found, _, _ := d.find(&d.root, c.ID)
		if found == nil {
			d.t.Fatalf("%s is not there", c.ID)
		}
		*found = fresh
		return
	}
	if old := d.remove(c.ID); !sent {
		fresh = old
	}
	list := &d.root
	if c.In != "main" {
		list, _, _ = d.find(&d.root, c.In)
	}
	at := 0
	if c.After != "" {
		before, around, place := d.find(&d.root, c.After)
		if before == nil || around != list {
			d.t.Fatalf("%s is to be behind %s, which is not in %s", c.ID, c.After, c.In)
		}
		at = place + 1
	}
	list.Parts = slices.Insert(slices.Clone(list.Parts), at, fresh)
}

// someParts are sections with lists, of which some parts are in another list than before.
func someParts(r *rand.Rand) []Fragment {
	var sections []Fragment
	ids := r.Perm(12)[:r.IntN(12)]
	for _, n := range r.Perm(3)[:1+r.IntN(3)] {
		list := Fragment{ID: fmt.Sprint("list-", n), Head: "<ul>", Tail: "</ul>", List: true}
		cut := r.IntN(len(ids) + 1)
		for _, id := range ids[:cut] {
			list.Parts = append(list.Parts, Fragment{
				ID: fmt.Sprint("p-", id), Head: template.HTML(fmt.Sprintf("<li>%d", id)),
				Parts: []Fragment{{ID: fmt.Sprint("q-", id), Head: template.HTML(fmt.Sprintf("<b>%d.%d</b>", id, r.IntN(3)))}},
				Tail:  "</li>",
			})
		}
		ids = ids[cut:]
		sections = append(sections, Fragment{
			ID: fmt.Sprint("section-", n), Head: template.HTML(fmt.Sprintf("<div class=%d.%d>", n, r.IntN(4)/3)),
			Parts: []Fragment{list, {Head: template.HTML(fmt.Sprint("text ", n, r.IntN(4)/3))}}, Tail: "</div>",
		})
	}
	return sections
}

// proves WEB-1: a page that takes up changes is the page that the server has
func TestChangesMakeTheNextPage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		old, next := someParts(r), someParts(r)
		d := &document{t: t, root: Fragment{ID: "main", Parts: old}, known: map[template.HTML]Fragment{}}
		for _, f := range next {
			d.know(f)
		}
		changes := Changes(old, next)
		for _, c := range changes {
			d.take(c)
		}
		want := Fragment{Parts: next}.HTML()
		if got := d.root.HTML(); got != want {
			t.Fatalf("%d: from\n%s\nby %+v\nto\n%s\nwant\n%s", n, Fragment{Parts: old}.HTML(), changes, got, want)
		}
		if same := Changes(next, next); len(same) != 0 {
			t.Fatalf("%d: a page that is the same changes: %+v", n, same)
		}
	}
}

// proves WEB-1: what stays where it is, is not sent
func TestChangesAreFew(t *testing.T) {
	t.Parallel()
	rows := func(text string, ids ...int) []Fragment {
		list := Fragment{ID: "rows", List: true}
		for _, id := range ids {
			list.Parts = append(list.Parts, Fragment{ID: fmt.Sprint(id), Head: template.HTML(fmt.Sprint(text, id))})
		}
		return []Fragment{list}
	}
	for what, c := range map[string]struct {
		old, next []Fragment
		want      []Change
	}{
		"one comes first, the last goes": {rows("a", 1, 2, 3), rows("a", 0, 1, 2), []Change{
			{ID: "3", Gone: true}, {ID: "0", In: "rows", HTML: "a0"},
		}},
		"the first becomes the last": {rows("a", 1, 2, 3), rows("a", 2, 3, 1), []Change{{ID: "1", In: "rows", After: "3"}}},
		"the last becomes the first": {rows("a", 1, 2, 3), rows("a", 3, 1, 2), []Change{{ID: "3", In: "rows"}}},
		"all come":                   {rows("a"), rows("a", 1), []Change{{ID: "1", In: "rows", HTML: "a1"}}},
		"all go":                     {rows("a", 1), rows("a"), []Change{{ID: "1", Gone: true}}},
		"one has another text":       {rows("a", 1), rows("b", 1), []Change{{ID: "1", HTML: "b1"}}},
	} {
		if got := Changes(c.old, c.next); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", what, got, c.want)
		}
	}
}
