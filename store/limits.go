package store

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MaxLimit is the largest limit of instances (CAP-1).
const MaxLimit = 1_000_000

// Limits are the most instances that there may be for each of several names, such as
// "ec2:100,lxd:20" (CAP-1). A name may contain colons.
type Limits string

// ByName returns the limits; nil if it is none, or not readable.
func (l Limits) ByName() map[string]int {
	byName, err := l.read()
	if err != nil {
		return nil
	}
	return byName
}

func (l Limits) read() (map[string]int, error) {
	if l == "" || l == "none" {
		return nil, nil
	}
	byName := map[string]int{}
	for _, part := range strings.Split(string(l), ",") {
		at := strings.LastIndexByte(part, ':')
		if at <= 0 {
			return nil, fmt.Errorf("%q is not a name and a number like ec2:100", part)
		}
		name := strings.TrimSpace(part[:at])
		n, err := strconv.Atoi(part[at+1:])
		if _, twice := byName[name]; err != nil || n < 0 || n > MaxLimit || twice || name == "" {
			return nil, fmt.Errorf("%q is not a name and a number like ec2:100, or is there twice", part)
		}
		byName[name] = n
	}
	return byName, nil
}

// UnmarshalText reads the limits and sorts them by name: equal limits have equal texts.
func (l *Limits) UnmarshalText(text []byte) error {
	byName, err := Limits(text).read()
	if err != nil {
		return err
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, byName[name]))
	}
	*l = Limits(strings.Join(parts, ","))
	return nil
}

// MarshalText writes them as they are.
func (l Limits) MarshalText() ([]byte, error) { return []byte(l), nil }

func (l Limits) String() string {
	if l == "" {
		return "none"
	}
	return string(l)
}
