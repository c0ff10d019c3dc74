//go:build !wrongclock

package main

import "errors"

func setSource(string) error {
	return errors.New("this cast was built without a source of its own: see source_own.go")
}
