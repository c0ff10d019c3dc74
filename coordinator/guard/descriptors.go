package guard

import (
	"fmt"
	"syscall"
)

// Descriptors is how many files and connections this process may have open. Go has raised that to all that it can be when the process began.
func Descriptors() (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read how many descriptors there may be: %w", err)
	}
	return limit.Cur, nil
}
