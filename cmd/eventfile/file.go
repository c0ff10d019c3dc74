package eventfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/leasehold/leasehold/coordinator/review"
	"github.com/leasehold/leasehold/store"
)

// Format is the version of the files that this program writes and reads.
const Format = 1

// longest bounds a line: etcd's values are shorter.
const longest = 8 << 20

// Head is the first line.
type Head struct {
	Format  int            `json:"leasehold_events"`
	Schema  int            `json:"schema"` // schema of the records
	Shard   string         `json:"shard"`
	From    time.Time      `json:"from"`
	To      time.Time      `json:"to"`
	Created time.Time      `json:"created,omitzero"` // the shard; after a restore of etcd, since then
	Kept    store.Duration `json:"events_kept"`
	Program string         `json:"program"`
	// Settings are the shard's settings.
	Settings store.ShardSettings `json:"settings"`
}

// line is any other line but the last.
type line struct {
	Group    json.RawMessage `json:"group,omitempty"` // the spec in force
	Instance *store.Instance `json:"instance,omitempty"`
	Day      json.RawMessage `json:"day,omitempty"`
	Load     json.RawMessage `json:"load,omitempty"`
	Event    json.RawMessage `json:"event,omitempty"`
	End      *end            `json:"end,omitempty"`
}

// end is the last line.
type end struct {
	Lines int    `json:"lines"` // lines before it
	Sum   string `json:"sha256"`
}

// Writer writes a file.
type Writer struct {
	to    *bufio.Writer
	sum   hash.Hash
	lines int
}

// NewWriter begins a file.
func NewWriter(to io.Writer, h Head) (*Writer, error) {
	w := &Writer{to: bufio.NewWriter(to), sum: sha256.New()}
	h.Format, h.Schema = Format, store.Schema
	return w, w.write(h)
}

func (w *Writer) write(record any) error {
	text := append(store.Encode(record), '\n')
	w.lines++
	w.sum.Write(text)
	_, err := w.to.Write(text)
	return err
}

// Group writes the spec of a group in force.
func (w *Writer) Group(g store.Group) error { return w.write(line{Group: store.Encode(g)}) }

// Instance writes the part of an instance's record that reports need.
func (w *Writer) Instance(i store.Instance) error {
	return w.write(struct {
		Instance any `json:"instance"`
	}{map[string]any{
		"schema": i.Schema, "id": i.ID, "group": i.Group, "slot": i.Slot, "managed": i.Managed, "phase": i.Phase,
		"created": i.Created,
	}})
}

// Day writes a summary of a day as it is stored.
func (w *Writer) Day(value []byte) error { return w.write(line{Day: value}) }

// Load writes a load as it is stored.
func (w *Writer) Load(value []byte) error { return w.write(line{Load: value}) }

// Event writes an entry of the journal as it is stored.
func (w *Writer) Event(value []byte) error { return w.write(line{Event: value}) }

// Close writes the last line.
func (w *Writer) Close() error {
	last := line{End: &end{Lines: w.lines, Sum: hex.EncodeToString(w.sum.Sum(nil))}}
	if err := w.write(last); err != nil {
		return err
	}
	return w.to.Flush()
}

// Content is the content of a file, without what is only for people.
type Content struct {
	Head   Head
	Past   review.Input
	Groups []store.Group
}

// Error is a problem of a file, with its place.
type Error struct {
	Line int
	Byte int64 // where the line begins
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("line %d (byte %d): %s", e.Line, e.Byte, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Errors of files.
var (
	ErrNoEvents = errors.New("it does not begin as a file of leasehold events export does")
	ErrNewer    = errors.New("it was written by a newer program: upgrade this one")
	ErrCut      = errors.New("the file ends without its last line: it was cut short")
	ErrDamaged  = errors.New("the file is damaged: its checksum is another")
)

// Read reads a file, and reports at intervals how many lines it has read.
func Read(from io.Reader, progress func(lines int)) (*Content, error) {
	r := reader{in: bufio.NewReaderSize(from, 1<<16), sum: sha256.New()}
	err := r.read(progress)
	if err != nil {
		return nil, &Error{Line: r.line, Byte: r.begins, Err: err}
	}
	return &r.content, nil
}

type reader struct {
	in      *bufio.Reader
	sum     hash.Hash
	line    int
	begins  int64
	ends    int64
	content Content
}

func (r *reader) read(progress func(lines int)) error {
	text, err := r.next()
	if err != nil {
		return err
	}
	h := &r.content.Head
	if err := json.Unmarshal(text, h); err != nil || h.Format == 0 {
		return ErrNoEvents
	}
	if h.Format > Format || h.Schema > store.Schema {
		return ErrNewer
	}
	r.sum.Write(text)
	for {
		text, err := r.next()
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		if l.End != nil {
			return r.end(l.End)
		}
		r.sum.Write(text)
		if err := r.take(&l); err != nil {
			return err
		}
		if r.line%1000 == 0 {
			progress(r.line)
		}
	}
}

// next reads a line with its end.
func (r *reader) next() (text []byte, err error) {
	r.line, r.begins = r.line+1, r.ends
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		r.ends += int64(len(part))
		switch {
		case err == nil:
			return text, nil
		case errors.Is(err, io.EOF):
			return nil, ErrCut
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(text) > longest:
			return nil, fmt.Errorf("the line is longer than %d bytes", longest)
		}
	}
}

func (r *reader) end(e *end) error {
	if e.Lines != r.line-1 || e.Sum != hex.EncodeToString(r.sum.Sum(nil)) {
		return ErrDamaged
	}
	if rest, _ := r.in.Peek(1); len(bytes.TrimSpace(rest)) > 0 {
		return errors.New("something follows the last line")
	}
	h := r.content.Head
	p := &r.content.Past
	p.From, p.To, p.Created, p.Kept = h.From, h.To, h.Created, h.Kept.D()
	return nil
}

// take takes a line. It ignores kinds that this program does not know.
func (r *reader) take(l *line) error {
	c := &r.content
	switch {
	case l.Event != nil:
		var e store.JournalEntry
		if err := decode(l.Event, &e); err != nil {
			return err
		}
		c.Past.Entries = append(c.Past.Entries, review.Slim(e))
	case l.Load != nil:
		return appended(l.Load, &c.Past.Loads)
	case l.Day != nil:
		return appended(l.Day, &c.Past.Days)
	case l.Instance != nil:
		c.Past.Instances = append(c.Past.Instances, *l.Instance)
	case l.Group != nil:
		g, err := store.ReadGroup(l.Group)
		if err != nil {
			return err
		}
		c.Groups = append(c.Groups, g)
	}
	return nil
}

func appended[T any](text json.RawMessage, to *[]T) error {
	var one T
	if err := decode(text, &one); err != nil {
		return err
	}
	*to = append(*to, one)
	return nil
}

func decode(text json.RawMessage, record any) error {
	schema, err := store.SchemaOf(text)
	if err == nil && schema > store.Schema {
		return ErrNewer
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, record)
}
