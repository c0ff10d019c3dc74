package secrets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Received is one secret as a replica sent it.
type Received struct {
	Variable string // variable of the environment
	Name     string // name of the secret
	Value    []byte
	Revision uint64
	Problem  string // why there is no value; "": there is one
}

// Format prints no value, whatever the verb.
func (t Received) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "secret %s", t.Name) }

// Holder holds the secrets of one machine. Its methods can be called at any time; a nil Holder has
// no secrets.
type Holder struct {
	mu       sync.Mutex
	wanted   map[string]string   // variable → name
	received map[string]Received // variable → what was received
	number   int                 // counts changes
	veil     veil
	unread   bool // files may have secrets that were not read yet
}

// New returns a Holder without secrets.
func New() *Holder { return &Holder{} }

// Want sets the names of the wanted secrets, by variable. It keeps the values that were received
// for the same secrets.
func (h *Holder) Want(wanted map[string]string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if maps.Equal(wanted, h.wanted) {
		return
	}
	h.number++
	h.wanted = maps.Clone(wanted)
	received := map[string]Received{}
	for variable, t := range h.received {
		if wanted[variable] == t.Name {
			received[variable] = t
		}
	}
	h.received = received
}

// Tell replaces all wanted secrets, and reports whether anything changed.
func (h *Holder) Tell(list []Received) bool {
	if h == nil {
		return false
	}
	wanted := map[string]string{}
	for _, t := range list {
		wanted[t.Variable] = t.Name
	}
	h.Want(wanted)
	h.mu.Lock()
	defer h.mu.Unlock()
	news := false
	for _, t := range list {
		was, known := h.received[t.Variable]
		if known && was.Revision == t.Revision && was.Problem == t.Problem && string(was.Value) == string(t.Value) {
			continue
		}
		if known && was.Problem == "" && t.Problem != "" && t.Revision == was.Revision {
			continue // another replica could read what this one cannot
		}
		news = true
		if t.Problem != "" {
			t.Value = nil
		}
		h.received[t.Variable] = t
		h.veil.add(t.Name, string(t.Value))
	}
	if news {
		h.number++
	}
	return news
}

// Number grows with each change.
func (h *Holder) Number() int {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.number
}

// Missing returns what keeps a workload from being started, or "".
func (h *Holder) Missing() string {
	if h == nil {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var why []string
	for _, variable := range slices.Sorted(maps.Keys(h.wanted)) {
		name := h.wanted[variable]
		switch t, known := h.received[variable]; {
		case !known:
			return "no coordinator has sent its secrets yet"
		case t.Problem != "":
			why = append(why, fmt.Sprintf("secret %s (%s): %s", name, variable, t.Problem))
		}
	}
	return strings.Join(why, "; ")
}

// Blind reports whether wanted secrets have not arrived yet.
func (h *Holder) Blind() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unread {
		return true
	}
	for variable := range h.wanted {
		if _, known := h.received[variable]; !known {
			return true
		}
	}
	return false
}

// Environ returns the known values in the form of an environment.
func (h *Holder) Environ() []string {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for _, variable := range slices.Sorted(maps.Keys(h.received)) {
		if t := h.received[variable]; t.Problem == "" {
			out = append(out, variable+"="+string(t.Value))
		}
	}
	return out
}

// Hide adds a value that is in no environment, such as the content of a file, to those that Veil
// removes. Texts show the name instead.
func (h *Holder) Hide(name string, value []byte) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.veil.add(name, string(value))
}

// Unread says whether files may have secrets that Hide has not received yet.
func (h *Holder) Unread(unread bool) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unread != unread {
		h.number++
	}
	h.unread = unread
}

// Veil returns the text with all values removed.
func (h *Holder) Veil(text string) string {
	if h == nil {
		return text
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.veil.over(text)
}

// VeilEnd is Veil for the end of a longer text. It also removes the rest of a value with which the
// text may begin.
func (h *Holder) VeilEnd(text []byte) []byte {
	if h == nil {
		return text
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return []byte(h.veil.overEnd(string(text)))
}

// Format prints no value, whatever the verb.
func (h *Holder) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, "secrets") }
