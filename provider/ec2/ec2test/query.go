package ec2test

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// read reads and checks a request.
func (s *Server) read(w http.ResponseWriter, r *http.Request) (url.Values, *fault) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, refuse("InvalidRequest", "The body cannot be read: %s", err)
	}
	if f := s.signed(r, body); f != nil {
		return nil, f
	}
	if r.Method != http.MethodPost || r.URL.Path != "/" {
		return nil, refuse("InvalidRequest", "%s %s is no request of the Query API", r.Method, r.URL.Path)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, refuse("MalformedQueryString", "The query string contains a syntax error: %s", err)
	}
	return form, nil
}

// query is the parameters of a request. What was never asked for is unknown.
type query struct {
	form url.Values
	used map[string]bool
}

func (q *query) text(name string) string {
	q.used[name] = true
	return q.form.Get(name)
}

func (q *query) number(name string) int {
	n, err := strconv.Atoi(q.text(name))
	if err != nil {
		return 0
	}
	return n
}

// list are the values NAME.1, NAME.2 …
func (q *query) list(name string) (out []string) {
	for n := 1; q.form.Has(fmt.Sprintf("%s.%d", name, n)); n++ {
		out = append(out, q.text(fmt.Sprintf("%s.%d", name, n)))
	}
	return out
}

// groups are the prefixes NAME.1. NAME.2. … of which there are parameters.
func (q *query) groups(name string) (out []string) {
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

// done refuses parameters that were not asked for.
func (q *query) done() *fault {
	for k := range q.form {
		if !q.used[k] {
			return refuse("UnknownParameter", "The parameter %s is not recognized", k)
		}
	}
	return nil
}

func respond(w http.ResponseWriter, answer any, f *fault) {
	status := http.StatusOK
	if f != nil {
		type failure struct {
			Code, Message string
		}
		status = f.status
		answer = struct {
			XMLName xml.Name  `xml:"Response"`
			Errors  []failure `xml:"Errors>Error"`
			ID      string    `xml:"RequestID"`
		}{Errors: []failure{{f.code, f.message}}, ID: "test"}
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
