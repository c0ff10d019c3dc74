package durable

import (
	"errors"
	"io/fs"
	"syscall"
)

// Cause returns why a file could not be written, without the names of files that the writer made.
func Cause(err error) error {
	if why := (*fs.PathError)(nil); errors.As(err, &why) {
		return why.Err
	}
	return err
}

// Full reports whether nothing could be written because the disk, or our share of it, is full.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
