package page

import (
	"net/http"
	"net/url"
)

func (p *Pages) instance(b *builder, id string) Page {
	v, read := p.views.Instance(id, b.now)
	if !read {
		return b.unread()
	}
	page := b.page(v.Truth, v.Revision)
	page.Title, page.Here, page.Command = id, "shard", "leasehold explain "+id
	if v.Group != "" {
		page.Trail = append(page.Trail, Step{v.Group, "/g/" + url.PathEscape(v.Group)})
	}
	page.Trail = append(page.Trail, Step{id, "/i/" + url.PathEscape(id)})
	if !v.There && len(v.Events) == 0 {
		page.Status = http.StatusNotFound
		page.Main = []Fragment{b.fragment("lost", "noinstance", v)}
		return page
	}
	page.Said = v.Answer()
	page.Main = []Fragment{
		b.fragment("answer", "answer", v), b.fragment("facts", "facts", v), b.fragment("story", "story", v),
	}
	return page
}
