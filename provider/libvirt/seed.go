package libvirt

import (
	"encoding/binary"
	"encoding/json"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/userdata"
)

// seedOf is the volume from which cloud-init takes its user data and the machine's name: its data
// source NoCloud looks for a file system with the label cidata.
func seedOf(req provider.CreateRequest) ([]byte, error) {
	data, err := userdata.CloudConfig(req.Bootstrap, req.Agent)
	if err != nil {
		return nil, err
	}
	// JSON is YAML as well.
	meta, err := json.Marshal(map[string]string{
		"instance-id": req.Bootstrap.Instance, "local-hostname": hostname(req.Bootstrap.Instance),
	})
	if err != nil {
		return nil, err
	}
	return isoImage("cidata", []isoFile{{"META-DATA", append(meta, '\n')}, {"USER-DATA", []byte(data)}}), nil
}

func hostname(instance string) string {
	name := []byte(instance)
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			name[i] = c + 'a' - 'A'
		} else if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			name[i] = '-'
		}
	}
	const maxLabel = 63
	return string(name[:min(len(name), maxLabel)])
}

// isoFile is a file of an image. Linux shows its name in lower case.
type isoFile struct {
	name    string
	content []byte
}

const (
	sector      = 2048
	volumeStart = 16 // the sectors before it are the system's
	pathTables  = volumeStart + 2
	rootSector  = pathTables + 2
	firstFile   = rootSector + 1
)

// isoImage is a file system of ISO 9660 with a few files in its root directory, sorted by name.
func isoImage(label string, files []isoFile) []byte {
	sectors := func(n int) int { return (n + sector - 1) / sector }
	total := firstFile
	for _, f := range files {
		total += sectors(len(f.content))
	}
	image := make([]byte, total*sector)
	at := func(n int) []byte { return image[n*sector : (n+1)*sector] }

	entry := func(name string, start, length int, directory bool) []byte {
		const fixed = 33
		e := make([]byte, (fixed+len(name)+1)&^1)
		e[0] = byte(len(e))
		both32(e[2:], start)
		both32(e[10:], length)
		e[18], e[19], e[20] = 70, 1, 1 // the first of January 1970
		if directory {
			e[25] = 2
		}
		both16(e[28:], 1)
		e[32] = byte(len(name))
		copy(e[fixed:], name)
		return e
	}

	v := at(volumeStart)
	v[0], v[6] = 1, 1
	copy(v[1:], "CD001")
	pad(v[8:40], "")
	pad(v[40:72], label)
	both32(v[80:], total)
	both16(v[120:], 1)
	both16(v[124:], 1)
	both16(v[128:], sector)
	const tableLength = 10
	both32(v[132:], tableLength)
	binary.LittleEndian.PutUint32(v[140:], pathTables)
	binary.BigEndian.PutUint32(v[148:], pathTables+1)
	copy(v[156:], entry("\x00", rootSector, sector, true))
	pad(v[190:813], "")
	for _, date := range []int{813, 830, 847, 864} {
		copy(v[date:date+16], "0000000000000000")
	}
	v[881] = 1

	end := at(volumeStart + 1)
	end[0], end[6] = 255, 1
	copy(end[1:], "CD001")

	for i, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		t := at(pathTables + i)
		t[0] = 1
		order.PutUint32(t[2:], rootSector)
		order.PutUint16(t[6:], 1)
	}

	root := append(entry("\x00", rootSector, sector, true), entry("\x01", rootSector, sector, true)...)
	next := firstFile
	for _, f := range files {
		root = append(root, entry(f.name+".;1", next, len(f.content), false)...)
		copy(image[next*sector:], f.content)
		next += sectors(len(f.content))
	}
	copy(at(rootSector), root)
	return image
}

// both32 and both16 are numbers in both byte orders.
func both32(b []byte, n int) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.BigEndian.PutUint32(b[4:], uint32(n))
}

func both16(b []byte, n int) {
	binary.LittleEndian.PutUint16(b, uint16(n))
	binary.BigEndian.PutUint16(b[2:], uint16(n))
}

func pad(b []byte, text string) {
	for i := range b {
		b[i] = ' '
	}
	copy(b, text)
}
