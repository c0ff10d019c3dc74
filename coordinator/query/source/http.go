package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/coordinator/query"
	"github.com/theory/jsonpath"
)

// maxAnswer bounds the answer to one question.
const maxAnswer = 1 << 20

// HTTPConfig is a source that answers with a JSON document.
type HTTPConfig struct {
	Remote
	Pace
	// Path finds the number in the document, as a JSONPath query (RFC 9535) like $.queue.length. The
	// document itself is the number if it is not set.
	Path string `json:"path"`
}

type document struct {
	remote
	settings query.Settings
	path     *jsonpath.Path
}

// NewHTTP checks the configuration. It asks nothing.
func NewHTTP(c HTTPConfig) (Source, error) {
	d := &document{}
	var err error
	if d.remote, err = c.open(); err != nil {
		return nil, err
	}
	if d.settings, err = c.settings(strings.Contains(c.URL, groupMark)); err != nil {
		return nil, err
	}
	if c.Path == "" {
		c.Path = "$"
	}
	if d.path, err = jsonpath.Parse(c.Path); err != nil {
		return nil, fmt.Errorf("path: %q: must be a JSONPath query like $.queue.length: %w", c.Path, err)
	}
	return d, nil
}

func (d *document) Settings() query.Settings { return d.settings }

func (d *document) ask(ctx context.Context, group string) (float64, error) {
	var content any
	if err := d.get(ctx, strings.ReplaceAll(d.url, groupMark, group), &content); err != nil {
		return 0, err
	}
	found := d.path.Select(content)
	if len(found) != 1 {
		return 0, &query.Error{Kind: query.NoValue, Message: fmt.Sprintf(
			"path finds %d values in the answer, and must find one", len(found))}
	}
	return numberOf(found[0])
}

// numberOf returns a number, or a text that is one: some APIs write numbers so.
func numberOf(value any) (float64, error) {
	switch v := value.(type) {
	case float64:
		return v, nil
	case string:
		if n, err := strconv.ParseFloat(v, 64); err == nil {
			return n, nil
		}
	}
	return 0, &query.Error{Kind: query.NoValue, Message: fmt.Sprintf("the answer has %.60q where a number must be",
		fmt.Sprint(value))}
}

// get reads a JSON document.
func (r *remote) get(ctx context.Context, address string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the URL cannot be used")
	}
	token, err := r.token()
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "leasehold")
	answer, err := r.client.Do(request)
	if err != nil {
		var with *url.Error
		if errors.As(err, &with) { // its text has the URL
			err = with.Err
		}
		return unreachable(ctx, err)
	}
	defer answer.Body.Close()
	// The reason in the status line comes from the server: it may be long, and may repeat our token.
	said := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden:
		return &query.Error{Kind: query.Refused, Message: "it answered " + said}
	case answer.StatusCode/100 == 3:
		return &query.Error{Kind: query.Failed, Message: "it answered " + said +
			", and no redirect is followed: configure where it leads"}
	case answer.StatusCode/100 != 2:
		return &query.Error{Kind: query.Failed, Message: "it answered " + said}
	case err != nil:
		return unreachable(ctx, err)
	case len(body) > maxAnswer:
		return &query.Error{Kind: query.Unreadable, Message: fmt.Sprintf("the answer is longer than %d bytes", maxAnswer)}
	}
	if err := json.Unmarshal(body, to); err != nil {
		return &query.Error{Kind: query.Unreadable, Message: "the answer is not the JSON that it must be"}
	}
	return nil
}
