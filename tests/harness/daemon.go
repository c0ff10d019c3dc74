package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Daemon is a real service, like an LXD, that one of scripts/ runs for the tests. The script prints
// the service's directory, and takes the service down when its standard input closes: so nothing is
// left even if the tests are killed.
type Daemon struct {
	Dir    string
	name   string
	script *exec.Cmd
	hold   io.Closer
	said   bytes.Buffer
}

// StartDaemon starts the service of that name by a script of the module.
func StartDaemon(name, script string, args ...string) (*Daemon, error) {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return nil, fmt.Errorf("a real %s needs Linux and root: run the tests as root, "+
			"in a virtual machine for example, or leave this package out", name)
	}
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	d := &Daemon{name: name, script: exec.Command(filepath.Join(root, script), args...)}
	d.script.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the tests, which then end the script
	d.script.Stderr = &d.said
	if d.hold, err = d.script.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.script.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start %s: %w: %s", name, errors.Join(d.hold.Close(), d.script.Wait()), d.said.String())
	}
	d.Dir = strings.TrimSpace(line)
	return d, nil
}

// Stop takes the service down, and all that it has made. It is an error if anything is left.
func (d *Daemon) Stop() error {
	if err := errors.Join(d.hold.Close(), d.script.Wait()); err != nil {
		return fmt.Errorf("take %s down: %w: %s", d.name, err, d.said.String())
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), d.Dir) {
		return fmt.Errorf("mounts of %s are left:\n%s", d.Dir, mounts)
	}
	if _, err := os.Stat(d.Dir); err == nil {
		return fmt.Errorf("directory %s is left", d.Dir)
	}
	return nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == "/" {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}
