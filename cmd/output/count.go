package output

import (
	"strconv"

	"github.com/leasehold/leasehold/coordinator/reason"
)

// Counted formats a number with its noun.
func Counted(n int, one, many string) string { return reason.Counted(n, one, many) }

// Thousands writes a number with commas.
func Thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
