package ec2

import (
	"encoding/json"

	"github.com/leasehold/leasehold/provider/settings"
)

// options are Template.Settings.
type options struct {
	Image           string          `json:"image"`
	LaunchTemplate  *launchTemplate `json:"launch_template"`
	KeyName         string          `json:"key_name"`
	SecurityGroups  []string        `json:"security_groups"` // nil: the provider's
	InstanceProfile string          `json:"instance_profile"`
	RootDisk        *rootDisk       `json:"root_disk"`
	PublicAddress   *bool           `json:"public_address"` // nil: as the subnet says
	MetadataHops    int32           `json:"metadata_hops"`
	UserData        string          `json:"user_data"`
}

type launchTemplate struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

type rootDisk struct {
	GiB       int32  `json:"gib"`
	Type      string `json:"type"`
	Encrypted *bool  `json:"encrypted"`
}

// readSettings checks settings and fills in the defaults.
func (p *Provider) readSettings(given map[string]any) (options, error) {
	s := options{MetadataHops: 1}
	err := settings.Decode(p.schema, given, &s)
	return s, err
}

// schemaOf returns the JSON Schema of the settings, with the configuration's defaults.
func schemaOf(c Config) json.RawMessage {
	text := func(description, pattern string) map[string]any {
		s := map[string]any{"type": "string", "description": description, "minLength": 1}
		if pattern != "" {
			s["pattern"] = pattern
		}
		return s
	}
	with := func(s map[string]any, name string, value any) map[string]any { s[name] = value; return s }
	object := func(description string, required []string, properties map[string]any) map[string]any {
		return map[string]any{
			"type": "object", "description": description, "additionalProperties": false, "properties": properties,
			"required": required,
		}
	}
	image := text("ID of the image", imageForm.String())
	if c.Image != "" {
		image["default"] = c.Image
	}
	groups := map[string]any{
		"type": "array", "items": text("a security group's ID", groupForm.String()), "maxItems": 16,
		"description": "security groups; by default the provider's, else the default one of the VPC",
	}
	if c.SecurityGroups != nil {
		groups["default"] = c.SecurityGroups
	}
	schema := with(object("", []string{}, map[string]any{
		"image": image,
		"launch_template": with(object("a launch template, for whatever is not set here", []string{}, map[string]any{
			"id":      text("its ID", `^lt-[0-9a-f]{8,17}$`),
			"name":    text("its name", ""),
			"version": with(text("a number, $Latest or $Default", `^([0-9]+|\$Latest|\$Default)$`), "default", "$Default"),
		}), "oneOf", []any{
			map[string]any{"required": []string{"id"}}, map[string]any{"required": []string{"name"}},
		}),
		"key_name":         text("a key pair for SSH", ""),
		"security_groups":  groups,
		"instance_profile": text("name or ARN of the instance profile with the machine's role", ""),
		"root_disk": object("the root disk; by default as the image says", []string{"gib"}, map[string]any{
			"gib":       map[string]any{"type": "integer", "minimum": 1, "maximum": 65536, "description": "its size"},
			"type":      map[string]any{"enum": []string{"gp3", "gp2", "standard"}, "default": "gp3"},
			"encrypted": map[string]any{"type": "boolean", "description": "default: as the account says"},
		}),
		"public_address": map[string]any{
			"type": "boolean", "description": "whether it gets a public IPv4 address; by default the subnet says",
		},
		"metadata_hops": map[string]any{
			"type": "integer", "minimum": 1, "maximum": 64, "default": 1,
			"description": "hops that answers of the metadata service may take; 2 lets containers ask it",
		},
		"user_data": map[string]any{
			"type": "string", "maxLength": maxUserData, "pattern": `^(#!|#cloud-config)`,
			"description": "a script (#!…) or a #cloud-config that cloud-init carries out before the agent starts",
		},
	}), "$schema", "https://json-schema.org/draft/2020-12/schema")
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return data
}
