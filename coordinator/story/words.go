package story

import "strings"

// joined joins the lines of an error.
func joined(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
