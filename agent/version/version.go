// Package version orders versions of Leasehold. The planner and agents use it.
package version

import (
	"cmp"
	"strconv"
	"strings"
)

// Version is a version's place among the releases. The zero value is no version.
type Version struct {
	Major, Minor, Patch int
	// Commits is the number of commits after the release.
	Commits int
	pre     string // suffix of a pre-release: rc1
}

// Parse reads a version: v0.9.1; v0.9.1-rc1, which precedes it; or v0.9.1-4-gabc, four commits
// after it. ok is false for any other text.
func Parse(version string) (v Version, ok bool) {
	number, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	parts := strings.Split(number, ".")
	if len(parts) != 3 {
		return Version{}, false
	}
	for i, into := range []*int{&v.Major, &v.Minor, &v.Patch} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return Version{}, false
		}
		*into = n
	}
	for rest != "" {
		part, more, _ := strings.Cut(rest, "-")
		n, err := strconv.Atoi(part)
		switch hash, _, _ := strings.Cut(more, "-"); {
		case err == nil && n > 0 && strings.HasPrefix(hash, "g"):
			v.Commits, rest = n, ""
		case v.pre == "":
			v.pre, rest = part, more
		default:
			rest = more
		}
	}
	return v, true
}

// Compare returns -1, 0 or 1. Only versions of releases have an order.
func (v Version) Compare(o Version) int {
	if c := cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor), cmp.Compare(v.Patch, o.Patch)); c != 0 {
		return c
	}
	switch {
	case v.pre == o.pre:
	case v.pre == "":
		return 1
	case o.pre == "":
		return -1
	default:
		return comparePre(v.pre, o.pre)
	}
	return cmp.Compare(v.Commits, o.Commits)
}

// comparePre puts rc9 before rc10: digits at the end count as a number.
func comparePre(a, b string) int {
	const digits = "0123456789"
	x, y := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	if x == y {
		n, err := strconv.Atoi(a[len(x):])
		m, other := strconv.Atoi(b[len(y):])
		if err == nil && other == nil && n != m {
			return cmp.Compare(n, m)
		}
	}
	return cmp.Compare(a, b)
}

// Compare orders versions. Texts that are no versions come first, in the order of texts.
func Compare(a, b string) int {
	v, ok := Parse(a)
	o, known := Parse(b)
	switch {
	case ok && known:
		return cmp.Or(v.Compare(o), cmp.Compare(a, b))
	case ok:
		return 1
	case known:
		return -1
	default:
		return cmp.Compare(a, b)
	}
}

// Later reports whether a version is known to be later than another.
func Later(version, than string) bool {
	v, ok := Parse(version)
	o, known := Parse(than)
	return ok && known && v.Compare(o) > 0
}
