package durable

import (
	"errors"
	"syscall"
)

// Full reports whether nothing could be written because the disk, or our share of it, is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
