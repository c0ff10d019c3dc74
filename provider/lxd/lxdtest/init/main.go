// Command init is the first process of the smallest machine there is: it says that it has booted,
// and ends when LXD asks it to. It is the smallest workload as well.
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
	signal.Notify(asked, syscall.SIGPWR, systemdHalt, syscall.SIGTERM)
	fmt.Fprintln(os.Stdout, "booted")
	<-asked
}
