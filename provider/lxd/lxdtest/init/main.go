// Command init is the first process of the smallest machine there is: it says that it has booted,
// ends when LXD asks it to, and reboots its machine on SIGHUP. It is the smallest workload as well.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// systemdHalt is SIGRTMIN+3: LXC sends it to an init that blocks it, as one of Go's threads does.
const systemdHalt = syscall.Signal(37)

func main() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGPWR, systemdHalt, syscall.SIGTERM, syscall.SIGHUP)
	fmt.Fprintln(os.Stdout, "booted")
	if <-asked == syscall.SIGHUP && os.Getpid() == 1 { // in a process namespace of its own
		_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART)
	}
}
