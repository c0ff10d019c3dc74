package leaks

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Search looks for many values at once. It may be used by several goroutines.
type Search struct {
	begins [1 << 16]bool // what two bytes a form begins with
	forms  map[[least]byte][]form
}

// least is how long a form is at least, so that it is found at all.
const least = 4

type form struct{ text, value, encoding string }

// For returns a search for values, by what they are called.
func For(values map[string]string) (*Search, error) {
	s := &Search{forms: map[[least]byte][]form{}}
	for name, value := range values {
		for encoding, text := range Forms(value) {
			if len(text) < least {
				return nil, fmt.Errorf("%s as %s is too short to be searched for", name, encoding)
			}
			s.begins[binary.LittleEndian.Uint16([]byte(text))] = true
			at := [least]byte([]byte(text))
			s.forms[at] = append(s.forms[at], form{text, name, encoding})
		}
	}
	return s, nil
}

// In returns which values a text contains, in order and each once, with an encoding that reveals
// it.
func (s *Search) In(text []byte) (found []string) {
	for i := 0; i+least <= len(text); i++ {
		if !s.begins[binary.LittleEndian.Uint16(text[i:])] {
			continue
		}
		for _, f := range s.forms[[least]byte(text[i:])] {
			if bytes.HasPrefix(text[i:], []byte(f.text)) {
				found = append(found, f.value+", as "+f.encoding)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Forms are the encodings of a value that reveal it.
func Forms(value string) map[string]string {
	all := map[string]string{
		"plain": value, "hex": hex.EncodeToString([]byte(value)),
		"upper hex": strings.ToUpper(hex.EncodeToString([]byte(value))),
	}
	for name, enc := range map[string]*base64.Encoding{
		"base64":          base64.RawStdEncoding,
		"base64 for URLs": base64.RawURLEncoding,
	} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), value...))
			all[name+" at "+string(rune('0'+before))] = text[(before*8+5)/6 : (before+len(value))*8/6]
		}
	}
	return all
}
