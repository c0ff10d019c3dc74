// Badagent is an agent of a bad version: it ends at once, or runs and sends nothing.
package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

var version = "dev"

func main() {
	fmt.Fprintln(os.Stderr, "bad agent", version)
	if strings.Contains(version, "ends") {
		os.Exit(3)
	}
	time.Sleep(time.Hour)
}
