package libvirttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Cmdline is a kernel's command line for a guest of Initrd: it writes to the serial port, and a
// broken guest ends instead of waiting.
const Cmdline = "console=ttyS0 panic=-1 quiet no_timer_check"

// modules are what a guest needs of a kernel in which they are no fixed part.
var modules = []string{
	"failover", "net_failover", "virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
	"virtio_pci", "virtio_net", "virtio_blk", "cdrom", "isofs", "button", "evdev", "virtio_rng", "rng_core",
}

// Kernel is the newest kernel of this host, and where its modules are.
func Kernel() (file, modules string, err error) {
	all, err := filepath.Glob("/boot/vmlinuz-*")
	if err == nil && len(all) == 0 {
		err = errors.New("/boot has no kernel")
	}
	if err != nil {
		return "", "", err
	}
	file = slices.Max(all)
	return file, "/lib/modules/" + strings.TrimPrefix(filepath.Base(file), "vmlinuz-"), nil
}

// Boot adds a kernel and the initial file system of a guest to the pool, as the volumes kernel and
// initrd. Programs are files of this host by their path in the guest.
func (l *Libvirt) Boot(programs map[string]string) (err error) {
	kernel, dir, err := Kernel()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "leasehold-guest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	init := filepath.Join(work, "init")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", init,
		"github.com/leasehold/leasehold/provider/libvirt/libvirttest/guest")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build guest: %w\n%s", err, out)
	}
	files := map[string]string{"init": init}
	for path, file := range programs {
		files[strings.TrimPrefix(path, "/")] = file
	}
	if err := addModules(files, dir); err != nil {
		return err
	}
	image, err := initrd(files)
	if err != nil {
		return err
	}
	path := filepath.Join(work, "initrd")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		return err
	}
	return errors.Join(l.Add("kernel", kernel), l.Add("initrd", path))
}

// Print has a guest of Boot, on QEMU's own network, write a text to its console once it has booted.
func (l *Libvirt) Print(domain, text string) error {
	if err := l.awaitConsole(domain, "guest: booted"); err != nil {
		return err
	}
	if _, err := l.Virsh("qemu-monitor-command", "--hmp", domain, "hostfwd_add tcp:127.0.0.1:0-10.0.2.15:7"); err != nil {
		return err
	}
	networks, err := l.Virsh("qemu-monitor-command", "--hmp", domain, "info usernet")
	if err != nil {
		return err
	}
	forward := regexp.MustCompile(`HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)`).FindStringSubmatch(networks)
	if forward == nil {
		return fmt.Errorf("no port is forwarded to the guest: %s", networks)
	}
	c, err := net.Dial("tcp", "127.0.0.1:"+forward[1])
	if err != nil {
		return err
	}
	_, err = io.WriteString(c, text)
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	return l.awaitConsole(domain, text)
}

// guestPatience is how long a guest may take to start: seconds, or minutes on a machine that is
// busy, since QEMU interprets each of its instructions.
const guestPatience = 5 * time.Minute

// awaitConsole waits until a guest has written a text.
func (l *Libvirt) awaitConsole(domain, text string) error {
	for over := time.Now().Add(guestPatience); ; <-time.After(50 * time.Millisecond) {
		said, err := os.ReadFile(filepath.Join(l.Dir, "pool", domain+".console.log"))
		if err == nil && bytes.Contains(said, []byte(text)) {
			return nil
		}
		if time.Now().After(over) {
			if err != nil {
				return fmt.Errorf("console of domain %s: %w", domain, err)
			}
			return fmt.Errorf("domain %s has not written what was waited for: %.1000s", domain, said)
		}
	}
}

// addModules adds those that the kernel has as files.
func addModules(files map[string]string, dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _, is := strings.Cut(filepath.Base(path), ".ko")
		if !is || !slices.Contains(modules, strings.ReplaceAll(name, "-", "_")) {
			return nil
		}
		if !strings.HasSuffix(path, ".ko") {
			return fmt.Errorf("%s is compressed: guests for tests need a kernel like Debian's linux-image-cloud-amd64", path)
		}
		files["modules/"+name+".ko"] = path
		return nil
	})
}

// initrd is an archive of files, in the form of cpio that the kernel unpacks.
func initrd(files map[string]string) ([]byte, error) {
	const (
		directory = 0o040755
		file      = 0o100755
		device    = 0o020600
		alignment = 4
	)
	var out bytes.Buffer
	align := func() {
		for out.Len()%alignment != 0 {
			out.WriteByte(0)
		}
	}
	number := 0
	add := func(name string, mode int, content []byte, major, minor int) {
		number++
		fmt.Fprintf(&out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
			number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name)+1, 0)
		out.WriteString(name + "\x00")
		align()
		out.Write(content)
		align()
	}
	made := map[string]bool{}
	for _, name := range append(slices.Sorted(maps.Keys(files)), "dev/console", "dev/null") {
		for i := range name {
			if dir := name[:i]; name[i] == '/' && !made[dir] {
				made[dir] = true
				add(dir, directory, nil, 0, 0)
			}
		}
		source, is := files[name]
		if !is {
			add(name, device, nil, map[string]int{"dev/console": 5, "dev/null": 1}[name],
				map[string]int{"dev/console": 1, "dev/null": 3}[name])
			continue
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		add(name, file, content, 0, 0)
	}
	add("TRAILER!!!", 0, nil, 0, 0)
	return out.Bytes(), nil
}
