package page

import (
	"hash/fnv"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/store"
)

// Page is what a URL shows.
type Page struct {
	Status   int // HTTP status
	Title    string
	Trail    []Step // the path from the shard to this page
	Here     string // the current place in the header
	Command  string // prints the same in a terminal
	Revision store.Revision
	Truth    Truth
	Top      Fragment // how reliable the page is
	Main     []Fragment
	Live     string   // URL of its updates
	Others   []string // origins of other replicas that serve the same page
	Said     string   // its state in a few words, for screen readers
}

// Step is a page on the path to another one.
type Step struct{ Name, URL string }

// Truth says how reliable the page is.
type Truth struct {
	view.Truth
	Replica string    // that answered
	At      time.Time // the moment of a page of the past; zero: now
}

// Fragment is a part of a page with an ID in the document, so that it can be replaced alone. Its
// HTML is one element: Head, then its parts, then Tail. A part without an ID is replaced together
// with the fragment around it.
type Fragment struct {
	ID    string
	Head  template.HTML
	Parts []Fragment
	Tail  template.HTML
	List  bool // its parts are added, removed and moved one by one
}

// HTML is the whole fragment.
func (f Fragment) HTML() template.HTML {
	var b strings.Builder
	f.write(&b)
	return template.HTML(b.String()) // of what html/template has escaped
}

func (f Fragment) write(b *strings.Builder) {
	b.WriteString(string(f.Head))
	for i := range f.Parts {
		f.Parts[i].write(b)
	}
	b.WriteString(string(f.Tail))
}

// Have lists each fragment of a page with a digest, so that a reader can be sent what differs.
func (p Page) Have() string {
	names := make([]string, len(p.Main))
	for i := range p.Main {
		names[i] = p.Main[i].ID + "-" + p.Main[i].digest()
	}
	return strings.Join(names, " ")
}

func (f Fragment) digest() string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(f.HTML())) // a hash accepts everything
	return strconv.FormatUint(sum.Sum64(), 36)
}

// Missing returns what a reader lacks that has fragments with these digests.
func (p Page) Missing(have string) []Change {
	old := strings.Fields(have)
	if len(old) != len(p.Main) {
		return []Change{whole(p.Main)}
	}
	var changes []Change
	for i := range p.Main {
		id, digest := p.Main[i].ID, p.Main[i].digest()
		switch before, found := strings.CutPrefix(old[i], id+"-"); {
		case !found:
			return []Change{whole(p.Main)}
		case before != digest:
			changes = append(changes, Change{ID: id, HTML: p.Main[i].HTML()})
		}
	}
	return changes
}
