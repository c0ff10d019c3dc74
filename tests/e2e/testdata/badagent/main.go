// Badagent is an agent of a version that is no good: it ends at once, or runs and is never heard of.
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
