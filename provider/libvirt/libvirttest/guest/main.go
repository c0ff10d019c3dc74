// Command guest is the first process of a virtual machine for tests, in an initial file system with
// little else (libvirttest.Initrd). It loads the modules that are there, gives the interface the
// address and the gateway that QEMU's own network has for a guest, starts the agent if there is
// one, and passes on the power button. What anyone sends to its port 7 it writes to the console.
// When the agent has ended, the machine ends.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	agent   = "/bin/leasehold-agent"
	address = "10.0.2.15"
	port    = "7"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

func run() error {
	for dir, kind := range map[string]string{"/proc": "proc", "/sys": "sysfs", "/dev": "devtmpfs", "/tmp": "tmpfs"} {
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = unix.Mount(kind, dir, kind, 0, "")
		}
		if err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	if err := loadModules(); err != nil {
		return err
	}
	if err := setUp("lo", "127.0.0.1"); err != nil {
		return err
	}
	if _, err := net.InterfaceByName("eth0"); err == nil {
		if err := setUp("eth0", address); err != nil {
			return err
		}
		if err := routeAll([4]byte{10, 0, 2, 2}); err != nil {
			return err
		}
	}
	if err := echo(); err != nil {
		return err
	}
	document, err := documentOf()
	if err != nil {
		return err
	}
	button := make(chan struct{}, 1)
	watchButton(button)
	fmt.Fprintln(os.Stdout, "guest: booted")
	ended := make(chan error)
	var child *exec.Cmd
	if _, err := os.Stat(agent); err == nil {
		child = exec.Command(agent, "--bootstrap", document)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.Env = []string{"PATH=/bin", "HOME=/", "TERM=dumb"}
		if err := child.Start(); err != nil {
			return err
		}
		go func() { ended <- child.Wait() }()
	}
	for {
		select {
		case err := <-ended:
			return fmt.Errorf("the agent has ended: %w", err)
		case <-button:
			fmt.Fprintln(os.Stdout, "guest: the power button")
			if child == nil {
				return nil
			}
			if err := child.Process.Signal(syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
}

// documentOf is where the agent finds its document: in a seed for cloud-init if there is one, else
// in the SMBIOS tables.
func documentOf() (string, error) {
	disks, err := filepath.Glob("/dev/vd*")
	if err != nil {
		return "", err
	}
	for _, disk := range disks {
		if err := os.MkdirAll("/seed", 0o755); err != nil {
			return "", err
		}
		if err := unix.Mount(disk, "/seed", "iso9660", unix.MS_RDONLY, ""); err != nil {
			continue
		}
		text, err := os.ReadFile("/seed/user-data")
		if err != nil {
			return "", err
		}
		if _, err := os.Stat("/seed/meta-data"); err != nil {
			return "", err
		}
		var config struct {
			Files []struct{ Path, Content string } `json:"write_files"`
		}
		text, is := bytes.CutPrefix(text, []byte("#cloud-config\n"))
		if err := json.Unmarshal(text, &config); err != nil || !is || len(config.Files) == 0 {
			return "", fmt.Errorf("the user data are no cloud-config with files: %w", err)
		}
		for _, f := range config.Files {
			if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
				return "", err
			}
			if err := os.WriteFile(f.Path, []byte(f.Content), 0o600); err != nil {
				return "", err
			}
		}
		fmt.Fprintln(os.Stdout, "guest: the seed has", config.Files[0].Content)
		return config.Files[0].Path, nil
	}
	return "smbios", nil
}

// loadModules loads those in /modules. One that needs another that is not loaded yet comes again.
func loadModules() error {
	files, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	for len(files) > 0 {
		var later []string
		var errs []error
		for _, file := range files {
			f, err := os.Open(file)
			if err == nil {
				err = unix.FinitModule(int(f.Fd()), "", 0)
				f.Close()
			}
			if err != nil && !errors.Is(err, unix.EEXIST) {
				later, errs = append(later, file), append(errs, fmt.Errorf("load %s: %w", file, err))
			}
		}
		if len(later) == len(files) {
			return errors.Join(errs...)
		}
		files = later
	}
	return nil
}

// setUp gives an interface an address of a network of 256.
func setUp(name, address string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, step := range []struct {
		number uint
		set    func(r *unix.Ifreq) error
	}{
		{unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(net.ParseIP(address).To4()) }},
		{unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr([]byte{255, 255, 255, 0}) }},
		{unix.SIOCSIFFLAGS, func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil }},
	} {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = step.set(r)
		}
		if err == nil {
			err = unix.IoctlIfreq(s, step.number, r)
		}
		if err != nil {
			return fmt.Errorf("set up %s: %w", name, err)
		}
	}
	return nil
}

// echo begins to write to the console what is sent to the port.
func echo() error {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				fmt.Fprintln(os.Stdout, "guest:", err)
				return
			}
			if _, err := io.Copy(os.Stdout, c); err != nil {
				fmt.Fprintln(os.Stdout, "guest:", err)
			}
			c.Close()
		}
	}()
	return nil
}

// watchButton tells when the power button was pushed.
func watchButton(pushed chan<- struct{}) {
	devices, _ := filepath.Glob("/dev/input/event*") // none: there is no button
	for _, path := range devices {
		go func() {
			f, err := os.Open(path)
			if err != nil {
				fmt.Fprintln(os.Stdout, "guest:", err)
				return
			}
			defer f.Close()
			const size, power, key = 24, 116, 1 // of an event, with its time
			event := make([]byte, size)
			for {
				if _, err := io.ReadFull(f, event); err != nil {
					<-time.After(time.Second) // the device is gone
					return
				}
				if event[16] == key && event[18] == power && event[20] == 1 {
					pushed <- struct{}{}
				}
			}
		}()
	}
}
