package page

import (
	"net/http"
	"net/url"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/coordinator/view"
)

// instanceThen is an instance as it was, with its story up to then.
type instanceThen struct {
	view.Instance
	Name string
	Past past
}

func (p *Pages) instance(b *builder, id string) Page {
	if !b.at.IsZero() {
		return p.instanceThen(b, id)
	}
	v, read := p.views.Instance(id, b.now)
	if !read {
		return b.unread()
	}
	page := b.page(v.Truth, v.Revision)
	page.Title, page.Here, page.Command = id, "shard", "leasehold explain "+reason.ShellWord(id)
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
		b.fragment("answer", "answer", v), b.fragment("facts", "facts", instanceNow{v, curvesOf(&v, p.views.Sampled())}),
		b.fragment("story", "story", v),
	}
	return page
}

func (p *Pages) instanceThen(b *builder, id string) Page {
	of, read := p.views.InstanceAt(id, b.at, b.now)
	if !read {
		return b.unread()
	}
	v := instanceThen{Instance: of, Name: id}
	page := b.page(v.Truth, v.Revision)
	page.Title, page.Here = id+" at "+b.at.UTC().Format("01-02 15:04:05"), "shard"
	page.Command = "leasehold events --instance " + reason.ShellWord(id)
	if v.Group != "" {
		page.Trail = append(page.Trail, Step{v.Group, withMoment("/g/"+url.PathEscape(v.Group), b.at)})
	}
	page.Trail = append(page.Trail, Step{id, "/i/" + url.PathEscape(id)})
	page.Truth.At = b.at
	v.Past = b.pastOf("/i/"+url.PathEscape(id), func(e *journal.Entry) bool {
		return e.Instance == id || e.Replacement == id
	})
	page.Main = []Fragment{
		b.fragment("past", "past", v), b.fragment("answer", "answerthen", v), b.fragment("story", "story", v),
	}
	if !v.There && len(v.Events) == 0 {
		page.Status = http.StatusNotFound
	}
	return page
}
