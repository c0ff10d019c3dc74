package pki

import (
	"errors"
	"log/slog"
	"time"

	"github.com/leasehold/leasehold/coordinator/reload"
)

// settle is how long changed files must be stable before they count: files are copied to a host one
// after the other, and an authority that is missing meanwhile must not count as no longer trusted.
const settle = 2 * time.Second

// follow reads the files of an authority for the first time; they are read again when they change.
func follow(dir string, log *slog.Logger, parse func(raw) (Files, error)) (*reload.Files[raw, Files], error) {
	return reload.Open(reload.Config[raw, Files]{
		Read:   func() (raw, error) { return readStable(dir) },
		Parse:  func(source raw, _ Files) (Files, error) { return parse(source) },
		Settle: settle,
		Failed: func(err error) {
			var p *Problem
			next := ""
			if errors.As(err, &p) {
				next = p.Next
			}
			log.Error("changed certificate authority is unusable: the previous one stays in force",
				"dir", dir, "error", err, "next", next)
		},
	})
}
