package libvirt

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/provider"
)

// The parts of libvirt's formats that matter here.
type (
	domainXML struct {
		XMLName  xml.Name    `xml:"domain"`
		Type     string      `xml:"type,attr"`
		Name     string      `xml:"name"`
		Metadata rawXML      `xml:"metadata"`
		Memory   uint64      `xml:"memory"` // in KiB
		VCPU     int         `xml:"vcpu"`
		Sysinfo  *sysinfoXML `xml:"sysinfo,omitempty"`
		OS       osXML       `xml:"os"`
		Features struct {
			ACPI *struct{} `xml:"acpi"`
		} `xml:"features"`
		CPU struct {
			Mode string `xml:"mode,attr"`
		} `xml:"cpu"`
		OnCrash string     `xml:"on_crash"`
		Devices devicesXML `xml:"devices"`
	}
	rawXML struct {
		Text string `xml:",innerxml"`
	}
	sysinfoXML struct {
		Type    string   `xml:"type,attr"`
		Entries []string `xml:"oemStrings>entry"`
	}
	osXML struct {
		Type struct {
			Arch    string `xml:"arch,attr"`
			Machine string `xml:"machine,attr"`
			Text    string `xml:",chardata"`
		} `xml:"type"`
		Kernel  string    `xml:"kernel,omitempty"`
		Initrd  string    `xml:"initrd,omitempty"`
		Cmdline string    `xml:"cmdline,omitempty"`
		SMBIOS  *modeAttr `xml:"smbios,omitempty"`
	}
	modeAttr struct {
		Mode string `xml:"mode,attr"`
	}
	devicesXML struct {
		Disks      []diskXML      `xml:"disk"`
		Interfaces []interfaceXML `xml:"interface"`
		Serial     struct {
			Type   string `xml:"type,attr"`
			Source struct {
				Path   string `xml:"path,attr"`
				Append string `xml:"append,attr"`
			} `xml:"source"`
		} `xml:"serial"`
		RNG struct {
			Model   string     `xml:"model,attr"`
			Backend backendXML `xml:"backend"`
		} `xml:"rng"`
		Balloon modelAttr `xml:"memballoon"`
	}
	backendXML struct {
		Model string `xml:"model,attr"`
		Path  string `xml:",chardata"`
	}
	modelAttr struct {
		Model string `xml:"model,attr"`
	}
	diskXML struct {
		Type   string `xml:"type,attr"`
		Device string `xml:"device,attr"`
		Driver struct {
			Name string `xml:"name,attr"`
			Type string `xml:"type,attr"`
		} `xml:"driver"`
		Source struct {
			File string `xml:"file,attr"`
		} `xml:"source"`
		Target struct {
			Dev string `xml:"dev,attr"`
			Bus string `xml:"bus,attr"`
		} `xml:"target"`
		ReadOnly *struct{} `xml:"readonly,omitempty"`
	}
	interfaceXML struct {
		Type string `xml:"type,attr"`
		MAC  struct {
			Address string `xml:"address,attr"`
		} `xml:"mac"`
		Source *networkAttr  `xml:"source,omitempty"`
		Model  interfaceType `xml:"model"`
	}
	networkAttr struct {
		Network string `xml:"network,attr"`
	}
	interfaceType struct {
		Type string `xml:"type,attr"`
	}

	poolXML struct {
		Type   string `xml:"type,attr"`
		Target struct {
			Path string `xml:"path"`
		} `xml:"target"`
	}
	volumeXML struct {
		XMLName  xml.Name `xml:"volume"`
		Name     string   `xml:"name"`
		Capacity uint64   `xml:"capacity"`
		Target   struct {
			Path   string `xml:"path,omitempty"`
			Format struct {
				Type string `xml:"type,attr"`
			} `xml:"format"`
			Permissions *permissionsXML `xml:"permissions,omitempty"`
		} `xml:"target"`
		Backing *backingXML `xml:"backingStore,omitempty"`
	}
	permissionsXML struct {
		Mode string `xml:"mode"`
	}
	backingXML struct {
		Path   string `xml:"path"`
		Format struct {
			Type string `xml:"type,attr"`
		} `xml:"format"`
	}
)

// oemString has the bootstrap document.
func oemString(b provider.Bootstrap) (string, error) {
	document, err := b.Encode()
	if err != nil {
		return "", err
	}
	return provider.SMBIOSBootstrap + base64.StdEncoding.EncodeToString(document), nil
}

// definition is the definition of a machine's domain. It has no UUID: libvirt draws one, and
// refuses a second domain of the same name for having another.
func (p *Provider) definition(pl plan, s size, r record) (string, error) {
	metadata, err := r.encode(namespace)
	if err != nil {
		return "", err
	}
	x := domainXML{
		Type: "kvm", Name: pl.name, Metadata: rawXML{metadata}, Memory: s.memory >> 10, VCPU: s.vcpus,
		OnCrash: "destroy",
	}
	x.CPU.Mode = "host-passthrough"
	if p.config.Emulate {
		x.Type, x.CPU.Mode = "qemu", "maximum"
	}
	x.Features.ACPI = &struct{}{}
	x.OS.Type.Arch, x.OS.Type.Machine, x.OS.Type.Text = "x86_64", pl.settings.Machine, "hvm"
	if k := pl.settings.Kernel; k != "" {
		x.OS.Kernel, x.OS.Cmdline = pl.path(k), pl.settings.Cmdline
		if pl.settings.Initrd != "" {
			x.OS.Initrd = pl.path(pl.settings.Initrd)
		}
	}
	if pl.oem != "" {
		x.OS.SMBIOS = &modeAttr{"sysinfo"}
		x.Sysinfo = &sysinfoXML{Type: "smbios", Entries: []string{pl.oem}}
	}
	for i, v := range pl.volumes {
		var d diskXML
		d.Type, d.Device, d.Driver.Name, d.Driver.Type = "file", "disk", "qemu", v.format
		d.Source.File, d.Target.Dev, d.Target.Bus = pl.path(v.name), "vd"+string(rune('a'+i)), "virtio"
		if v.content != nil {
			d.ReadOnly = &struct{}{}
		}
		x.Devices.Disks = append(x.Devices.Disks, d)
	}
	for i, n := range *pl.settings.Networks {
		one := interfaceXML{Type: "network", Source: &networkAttr{n}, Model: interfaceType{"virtio"}}
		one.MAC.Address = macOf(pl.name, i)
		x.Devices.Interfaces = append(x.Devices.Interfaces, one)
	}
	if p.config.UserNetwork && len(*pl.settings.Networks) == 0 {
		one := interfaceXML{Type: "user", Model: interfaceType{"virtio"}}
		one.MAC.Address = macOf(pl.name, 0)
		x.Devices.Interfaces = append(x.Devices.Interfaces, one)
	}
	x.Devices.Serial.Type = "file"
	x.Devices.Serial.Source.Path, x.Devices.Serial.Source.Append = pl.path(pl.name+consoleSuffix), "on"
	x.Devices.RNG.Model, x.Devices.RNG.Backend = "virtio", backendXML{"random", "/dev/urandom"}
	x.Devices.Balloon.Model = "none"
	text, err := xml.Marshal(x)
	if err != nil {
		return "", fmt.Errorf("write the definition of domain %s: %w", pl.name, err)
	}
	return string(text), nil
}

func (pl plan) path(volume string) string { return strings.TrimSuffix(pl.dir, "/") + "/" + volume }
