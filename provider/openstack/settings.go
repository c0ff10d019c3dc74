package openstack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/provider/settings"
)

// templateSettings are Template.Settings.
type templateSettings struct {
	Image          string    `json:"image"`
	KeyName        string    `json:"key_name"`
	Networks       *[]string `json:"networks"` // nil: one of the zone's; empty: none
	SecurityGroups []string  `json:"security_groups"`
	ConfigDrive    bool      `json:"config_drive"`
}

// schemaOf returns the JSON Schema of the settings, with the configuration's defaults.
func schemaOf(c Config) json.RawMessage {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "minLength": 1, "description": description}
	}
	list := func(description string) map[string]any {
		return map[string]any{
			"type": "array", "items": map[string]any{"type": "string", "minLength": 1}, "uniqueItems": true,
			"description": description,
		}
	}
	image, key := text("name or ID of an image in Glance"), text("name of a keypair in Nova")
	groups := list("names of security groups")
	if c.Image != "" {
		image["default"] = c.Image
	}
	if c.KeyName != "" {
		key["default"] = c.KeyName
	}
	if c.SecurityGroups != nil {
		groups["default"] = c.SecurityGroups
	}
	data, err := json.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"image": image, "key_name": key, "security_groups": groups,
			"networks": list("names or IDs of networks; an interface on each. None: []; by default one of the zone's"),
			"config_drive": map[string]any{
				"type": "boolean", "default": false, "description": "user data on a drive as well, " +
					"for networks without a metadata service",
			},
		},
	})
	if err != nil {
		panic(err) // of texts alone
	}
	return data
}

// readSettings checks settings and fills in the defaults of the configuration.
func (p *Provider) readSettings(given map[string]any) (templateSettings, error) {
	s := templateSettings{
		Image: p.config.Image, KeyName: p.config.KeyName,
		SecurityGroups: slices.Clone(p.config.SecurityGroups), // decoding writes into it
	}
	err := settings.Decode(p.schema, given, &s)
	return s, err
}

// Nova's bounds on metadata.
const maxValue = 255

var tagForm = regexp.MustCompile(`^[a-zA-Z0-9_:. -]{1,255}$`)

func checkTag(key, value string) error {
	switch {
	case strings.HasPrefix(key, tags):
		return fmt.Errorf("tags: %s: names that begin with %s are Leasehold's", key, tags)
	case !tagForm.MatchString(key):
		return fmt.Errorf("tags: %q: Nova takes names of at most 255 of a-z, A-Z, 0-9, -, _, :, . and space", key)
	case len(value) > maxValue:
		return fmt.Errorf("tags: %s: is longer than Nova's %d bytes", key, maxValue)
	}
	return nil
}
