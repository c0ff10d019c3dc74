package lxd

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// settings are Template.Settings.
type settings struct {
	Image    string
	CPU      int
	Memory   string
	Disk     string
	Profiles []string // nil: the configuration's
	Network  network
	Config   map[string]string
}

// network is the interface eth0. The zero value leaves it to the profiles.
type network struct {
	Bridge  string // of the host
	Managed string // a network of LXD's
	None    bool
}

const maxCPU = 4096

var (
	sizeForm = regexp.MustCompile(`^[1-9][0-9]{0,14}(kB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,62}$`)
	linkForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$`)
)

// passed are the keys of LXD's configuration that a template may set: none of them gives the
// container more rights. One that ends with a dot is a family.
var passed = []string{
	"boot.autostart", "boot.autostart.delay", "boot.autostart.priority",
	"cloud-init.network-config", "cloud-init.user-data", "cloud-init.vendor-data",
	"environment.",
	"limits.cpu.allowance", "limits.cpu.priority", "limits.disk.priority", "limits.memory.enforce",
	"limits.memory.swap", "limits.processes",
	"user.",
}

// keptKeys are families within those that are Leasehold's own.
var keptKeys = []string{tags, "environment.LEASEHOLD_"}

func mayPass(key string) bool {
	for _, k := range keptKeys {
		if strings.HasPrefix(key, k) {
			return false
		}
	}
	for _, k := range passed {
		if family := strings.HasSuffix(k, "."); !family && key == k ||
			family && strings.HasPrefix(key, k) && len(key) > len(k) {
			return true
		}
	}
	return false
}

// schemaOf is the JSON Schema of the settings. Its defaults are the configuration's.
func schemaOf(c Config) json.RawMessage {
	text := func(description, pattern string) map[string]any {
		s := map[string]any{"type": "string", "description": description}
		if pattern != "" {
			s["pattern"] = pattern
		}
		return s
	}
	image := text("alias or full fingerprint of an image in LXD", "")
	if c.Image != "" {
		image["default"] = c.Image
	}
	profiles := map[string]any{
		"type": "array", "items": text("a profile's name", nameForm.String()),
		"description": "profiles, the later ones first in rank; none: []",
	}
	if c.Profiles != nil {
		profiles["default"] = c.Profiles
	}
	schema := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"image": image,
			"cpu": map[string]any{
				"type": "integer", "minimum": 1, "maximum": maxCPU, "description": "processors that it may use",
			},
			"memory":   text("memory that it may use, such as 512MiB", sizeForm.String()),
			"disk":     text("size of its root disk, such as 10GiB; the pool has to be one with quotas", sizeForm.String()),
			"profiles": profiles,
			"network": map[string]any{
				"type": "object", "additionalProperties": false, "minProperties": 1, "maxProperties": 1,
				"description": "its interface eth0; by default the profiles say",
				"properties": map[string]any{
					"bridge":  text("a bridge of the host", linkForm.String()),
					"managed": text("a network of LXD's", linkForm.String()),
					"none":    map[string]any{"const": true, "description": "no eth0"},
				},
			},
			"config": map[string]any{
				"type": "object", "additionalProperties": map[string]any{"type": "string"},
				"propertyNames": map[string]any{"pattern": passedPattern()},
				"description":   "keys of LXD's own configuration",
			},
		},
	}
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err) // of strings and numbers alone
	}
	return data
}

// passedPattern leaves it to Validate to refuse the keys that are Leasehold's own.
func passedPattern() string {
	var forms []string
	for _, k := range passed {
		form := regexp.QuoteMeta(k)
		if strings.HasSuffix(k, ".") {
			form += ".+"
		}
		forms = append(forms, form)
	}
	return "^(" + strings.Join(forms, "|") + ")$"
}

// readSettings reads and checks settings. Each error begins with the path of what is wrong.
func readSettings(given map[string]any) (settings, []error) {
	r := reader{}
	var s settings
	r.object("settings", given, map[string]func(string, any){
		"image":  func(at string, v any) { s.Image = r.text(at, v, nil, "an image's alias or fingerprint") },
		"cpu":    func(at string, v any) { s.CPU = r.number(at, v) },
		"memory": func(at string, v any) { s.Memory = r.text(at, v, sizeForm, "a size such as 512MiB") },
		"disk":   func(at string, v any) { s.Disk = r.text(at, v, sizeForm, "a size such as 10GiB") },
		"profiles": func(at string, v any) {
			s.Profiles = []string{}
			for i, name := range r.list(at, v) {
				s.Profiles = append(s.Profiles, r.text(fmt.Sprintf("%s[%d]", at, i), name, nameForm, "a profile's name"))
			}
		},
		"network": func(at string, v any) { s.Network = r.network(at, v) },
		"config":  func(at string, v any) { s.Config = r.config(at, v) },
	})
	return s, r.wrong
}

// reader collects what is wrong.
type reader struct{ wrong []error }

func (r *reader) fail(at, format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf("%s: "+format, append([]any{at}, args...)...))
}

// object reads a mapping whose keys are known.
func (r *reader) object(at string, given map[string]any, fields map[string]func(at string, v any)) {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		read, is := fields[key]
		if !is {
			r.fail(at+"."+key, "is no setting of this provider: it has %s",
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			continue
		}
		read(at+"."+key, given[key])
	}
}

func (r *reader) mapping(at string, v any) map[string]any {
	m, is := v.(map[string]any)
	if !is {
		r.fail(at, "must be a mapping, and is %v", v)
	}
	return m
}

func (r *reader) list(at string, v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case []string:
		var out []any
		for _, s := range v {
			out = append(out, s)
		}
		return out
	}
	r.fail(at, "must be a list, and is %v", v)
	return nil
}

func (r *reader) text(at string, v any, form *regexp.Regexp, what string) string {
	s, is := v.(string)
	if !is || s == "" || form != nil && !form.MatchString(s) {
		r.fail(at, "must be %s, and is %v", what, quoted(v))
		return ""
	}
	return s
}

func quoted(v any) any {
	if s, is := v.(string); is {
		return strconv.Quote(s)
	}
	return v
}

// number takes what YAML and JSON make of a whole number.
func (r *reader) number(at string, v any) int {
	n := math.NaN()
	switch v := v.(type) {
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float64:
		n = v
	}
	if math.IsNaN(n) || n != math.Trunc(n) || n < 1 || n > maxCPU {
		r.fail(at, "must be a whole number from 1 to %d, and is %v", maxCPU, quoted(v))
		return 0
	}
	return int(n)
}

func (r *reader) network(at string, v any) network {
	var n network
	given := r.mapping(at, v)
	if given == nil {
		return n
	}
	r.object(at, given, map[string]func(string, any){
		"bridge":  func(at string, v any) { n.Bridge = r.text(at, v, linkForm, "the name of a bridge") },
		"managed": func(at string, v any) { n.Managed = r.text(at, v, linkForm, "the name of a network") },
		"none": func(at string, v any) {
			if n.None = v == true; !n.None {
				r.fail(at, "can only be true")
			}
		},
	})
	if len(given) != 1 {
		r.fail(at, "must have exactly one of bridge, managed, none")
	}
	return n
}

func (r *reader) config(at string, v any) map[string]string {
	given := r.mapping(at, v)
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		value, is := given[key].(string)
		switch {
		case !mayPass(key):
			r.fail(at+"."+key, "may not be set by a template: put it into a profile. Allowed are %s", strings.Join(passed, ", "))
		case !is:
			r.fail(at+"."+key, "must be text, and is %v: put it in quotation marks", given[key])
		default:
			out[key] = value
		}
	}
	return out
}
