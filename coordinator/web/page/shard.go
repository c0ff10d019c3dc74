package page

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/story"
	"github.com/leasehold/leasehold/coordinator/view"
)

// shardPage is what the templates of the page of a shard show.
type shardPage struct {
	view.Shard
	Now    time.Time
	Events []journal.Entry
}

const recentEvents = 12

func (p *Pages) shard(b *builder) Page {
	v := shardPage{Now: b.now}
	var read bool
	if v.Shard, read = p.views.Shard(b.now); !read {
		return b.unread()
	}
	v.Events = p.views.Events(view.Wanted{Most: recentEvents}).Entries
	page := b.page(v.Truth, v.State.Revision)
	page.Title, page.Here, page.Command = p.cfg.Shard, "shard", "leasehold status"
	page.Said = reason.Counted(len(v.Problems), "problem", "problems")
	rows := tableRows("group-rows", len(v.Rows))
	for i := range v.Rows {
		rows.Parts[i] = b.fragment("g-"+v.Rows[i].Name, "grouprow", &v.Rows[i])
	}
	title, list := b.fragment("problems-title", "problemstitle", v), b.problems(v.Problems, v.Rows)
	page.Main = []Fragment{
		b.holding("problems", "problems", v, title, list),
		b.holding("groups", "groups", v, rows), b.recent(v, v.Events), b.fragment("replicas", "replicas", v),
	}
	return page
}

// problems lists problems, a part for each: its ID says what it is.
func (b *builder) problems(all []story.Problem, groups []view.GroupRow) Fragment {
	list := Fragment{ID: "problem-list", Head: `<ul id="problem-list" class="problems">`, Tail: "</ul>", List: true}
	times := map[string]int{}
	for i := range all {
		text := b.html("problem", linkedProblem(all[i], groups))
		id := "p-" + Fragment{Head: text}.digest()
		if times[id]++; times[id] > 1 {
			id += fmt.Sprint("-", times[id])
		}
		list.Parts = append(list.Parts, Fragment{ID: id, Head: template.HTML(`<li id="`+id+`">`) + text + "</li>"})
	}
	return list
}

// problem is a problem with the page of the group that it is about; "" if it is about none.
type problem struct {
	story.Problem
	URL string
}

func linkedProblem(p story.Problem, groups []view.GroupRow) problem {
	linked := problem{Problem: p}
	if slices.ContainsFunc(groups, func(g view.GroupRow) bool { return g.Name == p.About }) {
		linked.URL = "/g/" + url.PathEscape(p.About)
	}
	return linked
}
