package amazontest

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Fault is an answer that refuses.
type Fault struct {
	Status        int
	Code, Message string
}

// Refuse is the fault of a wrong request.
func Refuse(code, format string, args ...any) *Fault {
	return &Fault{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

const maxBody = 1 << 20

// Read reads and checks a request.
func (a Account) Read(w http.ResponseWriter, r *http.Request) (url.Values, *Fault) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, Refuse("InvalidRequest", "The body cannot be read: %s", err)
	}
	if f := a.signed(r, body); f != nil {
		return nil, f
	}
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		return nil, Refuse("InvalidRequest", "%s %s is no request of the Query API", r.Method, r.URL.Path)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, Refuse("MalformedQueryString", "The query string contains a syntax error: %s", err)
	}
	return form, nil
}

// Query is the parameters of a request. What was never asked for is unknown.
type Query struct {
	form url.Values
	used map[string]bool
}

// NewQuery are the parameters of a form.
func NewQuery(form url.Values) *Query {
	return &Query{form: form, used: map[string]bool{"Action": true, "Version": true}}
}

// Form is all parameters.
func (q *Query) Form() url.Values { return q.form }

// Text is a parameter, "" where there is none.
func (q *Query) Text(name string) string {
	q.used[name] = true
	return q.form.Get(name)
}

// Number is a parameter, 0 where there is none.
func (q *Query) Number(name string) int {
	n, err := strconv.Atoi(q.Text(name))
	if err != nil {
		return 0
	}
	return n
}

// List are the values NAME.1, NAME.2 …
func (q *Query) List(name string) (out []string) {
	for n := 1; q.form.Has(fmt.Sprintf("%s.%d", name, n)); n++ {
		out = append(out, q.Text(fmt.Sprintf("%s.%d", name, n)))
	}
	return out
}

// Groups are the prefixes NAME.1. NAME.2. … of which there are parameters.
func (q *Query) Groups(name string) (out []string) {
	for n := 1; ; n++ {
		prefix, is := fmt.Sprintf("%s.%d.", name, n), false
		for k := range q.form {
			is = is || strings.HasPrefix(k, prefix)
		}
		if !is {
			return out
		}
		out = append(out, prefix)
	}
}

// Done refuses parameters that were not asked for.
func (q *Query) Done() *Fault {
	for k := range q.form {
		if !q.used[k] {
			return Refuse("UnknownParameter", "The parameter %s is not recognized", k)
		}
	}
	return nil
}

// Respond writes an answer, or a fault in the form that EC2 has (flat) or the one of all others.
func Respond(w http.ResponseWriter, flat bool, answer any, f *Fault) {
	status := http.StatusOK
	type failure struct {
		Code, Message string
	}
	switch {
	case f == nil:
	case flat:
		status, answer = f.Status, struct {
			XMLName xml.Name  `xml:"Response"`
			Errors  []failure `xml:"Errors>Error"`
			ID      string    `xml:"RequestID"`
		}{Errors: []failure{{f.Code, f.Message}}, ID: "test"}
	default:
		status, answer = f.Status, struct {
			XMLName xml.Name `xml:"ErrorResponse"`
			Error   failure  `xml:"Error"`
			ID      string   `xml:"RequestId"`
		}{Error: failure{f.Code, f.Message}, ID: "test"}
	}
	text, err := xml.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, xml.Header+string(text)) // a client that has gone is its own affair
}
