package libvirt

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/settings"
)

// templateSettings are Template.Settings.
type templateSettings struct {
	Image     string    `json:"image"`
	Kernel    string    `json:"kernel"`
	Initrd    string    `json:"initrd"`
	Cmdline   string    `json:"cmdline"`
	VCPUs     int       `json:"vcpus"`
	Memory    string    `json:"memory"`
	Disk      string    `json:"disk"`
	DataDisk  string    `json:"data_disk"`
	Networks  *[]string `json:"networks"` // nil: the provider's
	Machine   string    `json:"machine"`
	Bootstrap string    `json:"bootstrap"`
}

// The ways in which the bootstrap document reaches a machine.
const (
	bySMBIOS    = "smbios"
	byCloudInit = "cloud-init"
)

const (
	maxVCPUs   = 1024
	maxCmdline = 1500 // of x86's 2048, with what the kernel adds
)

var (
	sizeForm = regexp.MustCompile(`^([1-9][0-9]{0,9})(MiB|GiB|TiB)$`)
	poolForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
)

// parseSize reads a size in bytes.
func parseSize(text string) (uint64, error) {
	parts := sizeForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("%q is not a size such as 512MiB or 20GiB", text)
	}
	n, err := strconv.ParseUint(parts[1], 10, 64)
	shift := map[string]int{"MiB": 20, "GiB": 30, "TiB": 40}[parts[2]]
	if err != nil || n >= 1<<(60-shift) {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n << shift, nil
}

// schemaOf returns the JSON Schema of the settings, with the configuration's defaults. Files are
// named as volumes of the pool: a user who may write groups must not choose what the hypervisor
// reads.
func schemaOf(c Config) json.RawMessage {
	text := func(description string, form *regexp.Regexp) map[string]any {
		s := map[string]any{"type": "string", "minLength": 1, "description": description}
		if form != nil {
			s["pattern"] = form.String()
		}
		return s
	}
	image := text("volume in the pool, qcow2 or raw, that the root disk is a copy of", volumeForm)
	if c.Image != "" {
		image["default"] = c.Image
	}
	networks := map[string]any{
		"type": "array", "items": text("a network's name", poolForm), "uniqueItems": true,
		"description": "networks of libvirt's: an interface on each; none: []",
	}
	if c.Networks != nil {
		networks["default"] = c.Networks
	}
	cmdline := text("the kernel's command line", nil)
	cmdline["maxLength"] = maxCmdline
	memory := text("memory, such as 2GiB", sizeForm)
	memory["default"] = "1GiB"
	data, err := json.Marshal(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"image": image, "networks": networks, "memory": memory, "cmdline": cmdline,
			"kernel": text("volume in the pool: a kernel that is booted without a disk, instead of an image", volumeForm),
			"initrd": text("volume in the pool: the kernel's first file system", volumeForm),
			"vcpus": map[string]any{
				"type": "integer", "minimum": 1, "maximum": maxVCPUs, "default": 1,
				"description": "processors",
			},
			"disk":      text("size of the root disk, such as 20GiB; by default the image's", sizeForm),
			"data_disk": text("size of a second, empty disk; it is deleted with the machine", sizeForm),
			"machine":   map[string]any{"enum": []string{"pc", "q35"}, "default": "q35", "description": "kind of mainboard"},
			"bootstrap": map[string]any{
				"enum": []string{bySMBIOS, byCloudInit},
				"description": "how the machine gets its bootstrap document; by default cloud-init with an " +
					"image, smbios with a kernel",
			},
		},
	})
	if err != nil {
		panic(err) // of texts alone
	}
	return data
}

// readSettings checks settings and fills in the defaults.
func (p *Provider) readSettings(given map[string]any) (s templateSettings, err error) {
	if err := settings.Decode(p.schema, given, &s); err != nil {
		return s, err
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %w", provider.ErrInvalid, fmt.Errorf(format, args...))
	}
	switch {
	case s.Image != "" && s.Kernel != "":
		return s, refuse("settings.kernel: there is an image as well: remove one")
	case s.Kernel == "" && (s.Initrd != "" || s.Cmdline != ""):
		return s, refuse("settings.kernel: is missing, and there is an initrd or a cmdline")
	case s.Kernel != "" && s.Disk != "":
		return s, refuse("settings.disk: a machine with a kernel has no root disk: use data_disk")
	case !plain(s.Cmdline):
		return s, refuse("settings.cmdline: must be printable text")
	}
	if s.Kernel == "" && s.Image == "" {
		s.Image = p.config.Image
	}
	for _, text := range []string{s.Memory, s.Disk, s.DataDisk} {
		if text == "" {
			continue
		}
		if _, err := parseSize(text); err != nil {
			return s, refuse("settings: %w", err)
		}
	}
	if s.Networks == nil {
		s.Networks = &p.config.Networks
	}
	if s.Machine == "" {
		s.Machine = "q35"
	}
	if s.Bootstrap == "" {
		s.Bootstrap = byCloudInit
		if s.Kernel != "" {
			s.Bootstrap = bySMBIOS
		}
	}
	return s, nil
}

// size is how large a machine is.
type size struct {
	name   string // of an instance type, or ""
	vcpus  int
	memory uint64
}

// sizesOf are the sizes that a template allows, in order of preference.
func (p *Provider) sizesOf(t provider.Template, s templateSettings) ([]size, error) {
	if len(t.InstanceTypes) == 0 {
		one := size{vcpus: max(s.VCPUs, 1), memory: defaultMemory}
		if s.Memory != "" {
			var err error
			if one.memory, err = parseSize(s.Memory); err != nil {
				return nil, err
			}
		}
		return []size{one}, nil
	}
	var all []size
	for _, name := range t.InstanceTypes {
		one, is := p.types[name]
		if !is {
			return nil, errors.New("instance type " + strings.TrimSpace(name) + " is not known")
		}
		all = append(all, one)
	}
	return all, nil
}
