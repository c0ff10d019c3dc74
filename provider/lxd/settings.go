package lxd

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/settings"
)

// templateSettings are Template.Settings.
type templateSettings struct {
	Image    string            `json:"image"`
	CPU      int               `json:"cpu"`
	Memory   string            `json:"memory"`
	Disk     string            `json:"disk"`
	Profiles []string          `json:"profiles"` // nil: the configuration's
	Network  network           `json:"network"`
	Config   map[string]string `json:"config"`
}

// network is the interface eth0. The zero value leaves it to the profiles.
type network struct {
	Bridge  string `json:"bridge"`  // of the host
	Managed string `json:"managed"` // a network of LXD's
	None    bool   `json:"none"`
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
	image["minLength"] = 1
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
				"type": "object", "additionalProperties": false,
				"patternProperties": map[string]any{
					onlyPassed(): map[string]any{"type": "string"}, onlyKept(): false,
				},
				"description": "keys of LXD's own configuration that give the container no more rights: " +
					strings.Join(passed, ", ") + "; others belong into a profile",
			},
		},
	}
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err) // of strings and numbers alone
	}
	return data
}

// onlyPassed and onlyKept are the patterns of the two lists. A family needs a name after it.
func onlyPassed() string {
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

func onlyKept() string {
	var forms []string
	for _, k := range keptKeys {
		forms = append(forms, regexp.QuoteMeta(k))
	}
	return "^(" + strings.Join(forms, "|") + ")"
}

// readSettings checks settings and fills in the defaults of the configuration.
func (p *Provider) readSettings(given map[string]any) (templateSettings, error) {
	s := templateSettings{Image: p.image, Profiles: slices.Clone(p.profiles)} // decoding writes into a slice
	if err := settings.Decode(p.schema, given, &s); err != nil {
		return s, err
	}
	switch {
	case s.Image == "":
		return s, &provider.Error{
			Kind: provider.Invalid, Scope: "template.settings.image",
			Message: "is missing, and the provider's configuration has no image either",
		}
	case s.Disk != "" && p.pool == "":
		return s, &provider.Error{
			Kind: provider.Invalid, Scope: "template.settings.disk",
			Message: "needs a pool in the provider's configuration",
		}
	}
	return s, nil
}
