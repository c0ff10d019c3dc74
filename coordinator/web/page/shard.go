package page

import (
	"time"

	"github.com/leasehold/leasehold/coordinator/journal"
	"github.com/leasehold/leasehold/coordinator/reason"
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
	page.Main = []Fragment{
		b.fragment("problems", "problems", v), b.fragment("groups", "groups", v),
		b.fragment("recent", "recent", v), b.fragment("replicas", "replicas", v),
	}
	return page
}
