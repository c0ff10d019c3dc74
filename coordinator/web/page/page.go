package page

import (
	"html/template"
	"strings"
	"time"

	"github.com/leasehold/leasehold/store"
)

// Page is what is shown under a URL.
type Page struct {
	Status   int // of HTTP
	Title    string
	Trail    []Step // the way from the shard to here
	Here     string // which of the places in the head it is
	Command  string // says the same
	Revision store.Revision
	Truth    Truth
	Main     []Fragment
}

// Step is a page on the way to another one.
type Step struct{ Name, URL string }

// Truth is how far what is shown can be relied on.
type Truth struct {
	Shard   string
	Replica string // that answers
	Leader  string // "": none leads
	Since   time.Time
	Heard   time.Time // the last time that etcd told us anything
	Stale   bool
	At      time.Time // of a page of the past; zero: now
}

// Fragment is a part of a page with an ID in the document, so that it can be replaced alone. Its HTML
// is that of one element: Head, then that of its parts, then Tail.
type Fragment struct {
	ID    string
	Head  template.HTML
	Parts []Fragment
	Tail  template.HTML
}

// HTML is the whole fragment.
func (f *Fragment) HTML() template.HTML {
	var b strings.Builder
	f.write(&b)
	return template.HTML(b.String()) // of what html/template has escaped
}

func (f *Fragment) write(b *strings.Builder) {
	b.WriteString(string(f.Head))
	for i := range f.Parts {
		f.Parts[i].write(b)
	}
	b.WriteString(string(f.Tail))
}
