package story

import (
	"strings"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// joined joins the lines of an error.
func joined(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func isAre(n int) string { return reason.Counted(n, "is", "are") }

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
