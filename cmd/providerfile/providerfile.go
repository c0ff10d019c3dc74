// Package providerfile opens the providers, load balancers and webhooks that a replica is
// configured with.
//
//	providers:
//	  acme:
//	    exec: {command: [/usr/lib/acme/leasehold], user: acme, config: {region: north}}
//	balancers:
//	  web:
//	    haproxy: {sockets: [unix:/run/haproxy/admin.sock], backend: web}
//	webhooks:
//	  chat:
//	    slack: {url_file: /etc/leasehold/chat.url, severity: critical}
//	authorities:
//	  web:
//	    own: {dir: /etc/leasehold/pki/workloads/web, domains: [web.internal]}
//	metrics:
//	  queue:
//	    http: {url: "https://queue.internal/stats", path: $.waiting}
//
// The file is the replica's own: a group only names a provider, balancers, authorities and metrics,
// so that writing a group is never a way to run something on a coordinator (SEC-7).
package providerfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/leasehold/leasehold/cmd/suggest"
	"github.com/leasehold/leasehold/cmd/yamlfile"
	"github.com/leasehold/leasehold/coordinator/webhook"
	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/balancer"
)

// Kinds are the kinds of provider and of load balancer that a file may name. A program chooses them
// (package adapters has all), so that none links more clouds than it uses.
type Kinds struct {
	Providers map[string]OpenProvider
	Balancers map[string]OpenBalancer
}

// OpenProvider opens a provider from its settings, in JSON.
type OpenProvider func(ctx context.Context, settings []byte, log *slog.Logger) (provider.Provider, error)

// OpenBalancer opens a load balancer from its name and its settings, in JSON.
type OpenBalancer func(ctx context.Context, name string, settings []byte, log *slog.Logger) (balancer.Balancer, error)

// Decode decodes settings. An unknown one is an error.
func Decode(settings []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(settings))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: must be %s, but is a %s", wrong.Field, shape(wrong.Type), wrong.Value)
	default:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
}

// shape returns a type's name in YAML's words.
func shape(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "names and values"
	default:
		return "a number"
	}
}

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`)

// Entry is a provider in a file that is not open yet.
type Entry struct {
	item
	open OpenProvider
}

// item is a name, a kind and its settings.
type item struct {
	Name, Kind string
	settings   []byte
	at         *yaml.Node
	reader     *yamlfile.Reader
}

// Read reads which providers a file names, if any. It runs nothing.
func (k Kinds) Read(path string) ([]Entry, error) {
	f, err := k.readFile(path)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(f.providers))
	for i, p := range f.providers {
		entries[i] = Entry{p, k.Providers[p.Kind]}
	}
	return entries, nil
}

// BalancerEntry is a load balancer in a file that is not open yet.
type BalancerEntry struct {
	item
	open OpenBalancer
}

// ReadBalancers reads which load balancers a file names, if any. It runs nothing.
func (k Kinds) ReadBalancers(path string) ([]BalancerEntry, error) {
	f, err := k.readFile(path)
	if err != nil {
		return nil, err
	}
	entries := make([]BalancerEntry, len(f.balancers))
	for i, b := range f.balancers {
		entries[i] = BalancerEntry{b, k.Balancers[b.Kind]}
	}
	return entries, nil
}

// file is the content of a file.
type file struct {
	reader      *yamlfile.Reader
	providers   []item
	balancers   []item
	authorities []item
	webhooks    []item
	metrics     []item
}

func (k Kinds) readFile(path string) (file, error) {
	opened, err := os.Open(path)
	if err != nil {
		return file{}, fmt.Errorf("read the file of providers: %w", err)
	}
	defer opened.Close()
	f := file{reader: &yamlfile.Reader{File: path}}
	roots, err := f.reader.Documents(opened, 1, "the file has more than one document")
	if err != nil {
		return f, err
	}
	for _, root := range roots {
		f.list(root, k)
	}
	if len(f.reader.Problems) > 0 {
		return f, f.reader.Problems.Sorted()
	}
	return f, nil
}

// sections are the fields of the file.
const sections = "providers, balancers, authorities, webhooks and metrics"

func (f *file) list(root *yaml.Node, k Kinds) {
	r := f.reader
	if root.Kind != yaml.MappingNode {
		r.Wrong(root, "", "must have at least one of the fields "+sections)
		return
	}
	r.Fields("", root, func(key, value *yaml.Node) {
		section, to, of, known := key.Value, &f.providers, "provider", slices.Sorted(maps.Keys(k.Providers))
		switch {
		case section == "balancers":
			to, of, known = &f.balancers, "balancer", slices.Sorted(maps.Keys(k.Balancers))
		case section == "authorities":
			to, of, known = &f.authorities, "authority", slices.Sorted(maps.Keys(authorityKinds))
		case section == "webhooks":
			to, of, known = &f.webhooks, "webhook", webhook.Forms()
		case section == "metrics":
			to, of, known = &f.metrics, "metric", slices.Sorted(maps.Keys(metricKinds))
		case section != "providers":
			r.Wrong(key, section, "unknown field: the file has only "+sections)
			return
		}
		if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
			r.Wrong(value, section, "must be names and the %s of each", of)
			return
		}
		r.Fields(section, value, func(name, value *yaml.Node) {
			if i, ok := read(r, yamlfile.Join(section, name.Value), of, known, name, value); ok {
				*to = append(*to, i)
			}
		})
	})
}

// read reads {KIND: {settings}}.
func read(r *yamlfile.Reader, path, of string, kinds []string, name, value *yaml.Node) (i item, ok bool) {
	known := strings.Join(kinds, ", ")
	switch {
	case !nameForm.MatchString(name.Value):
		r.Wrong(name, path, "must be a name of at most 40 of a-z, 0-9 and -, beginning with a letter")
		return i, false
	case value.Kind != yaml.MappingNode || len(value.Content) != 2:
		r.Wrong(value, path, "must be one kind of %s and its settings, for example exec: {command: [/path]}; "+
			"the kinds are %s", of, known)
		return i, false
	}
	kind, settings := value.Content[0], value.Content[1]
	if !slices.Contains(kinds, kind.Value) {
		var search suggest.Search
		for _, k := range kinds {
			search.Consider(kind.Value, k, k, 1)
		}
		hint := ""
		if best := search.Best(); best != "" {
			hint = ": did you mean " + best + "?"
		}
		r.Wrong(kind, path, "%q is no kind of %s; the kinds are %s%s", kind.Value, of, known, hint)
		return i, false
	}
	values := r.Value(yamlfile.Join(path, kind.Value), settings)
	text, err := json.Marshal(values)
	if err != nil {
		r.Wrong(settings, path, "%s", err)
		return i, false
	}
	return item{Name: name.Value, Kind: kind.Value, settings: text, at: kind, reader: r}, true
}

// in returns an error with the item's place.
func (i item) in(section string, err error) error {
	return fmt.Errorf("%s:%d: %s.%s.%s: %w", i.reader.File, i.at.Line, section, i.Name, i.Kind, err)
}

// Open opens the provider.
func (e Entry) Open(ctx context.Context, log *slog.Logger) (provider.Provider, error) {
	p, err := e.open(ctx, e.settings, log.With("provider", e.Name))
	if err != nil {
		return nil, e.in("providers", err)
	}
	return p, nil
}

// Open opens the load balancer.
func (e BalancerEntry) Open(ctx context.Context, log *slog.Logger) (balancer.Balancer, error) {
	b, err := e.open(ctx, e.Name, e.settings, log.With("balancer", e.Name))
	if err != nil {
		return nil, e.in("balancers", err)
	}
	return b, nil
}
