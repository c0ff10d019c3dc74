package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
	"github.com/leasehold/leasehold/cmd/program"
	"github.com/leasehold/leasehold/store"
)

// Ago is how far back an operator wants to look: a duration, optionally in days.
type Ago time.Duration

var (
	errAgo = errors.New("must be a time such as 90s, 30m, 24h or 7d")
	days   = regexp.MustCompile(`^([0-9]{1,5})d(.*)$`)
)

// UnmarshalText parses the argument.
func (a *Ago) UnmarshalText(text []byte) error {
	word := string(text)
	var sum time.Duration
	if m := days.FindStringSubmatch(word); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return fmt.Errorf("%q: %w", text, errAgo)
		}
		sum, word = time.Duration(n)*24*time.Hour, m[2]
	}
	if word != "" || sum == 0 && len(text) == 0 {
		d, err := time.ParseDuration(word)
		if err != nil || d < 0 {
			return fmt.Errorf("%q: %w", text, errAgo)
		}
		sum += d
	}
	*a = Ago(sum)
	return nil
}

// checkEndpoints refuses invalid addresses of etcd before the command waits for an answer.
func checkEndpoints(endpoints []string) error {
	if wrong, found := program.NoAddress(endpoints); found {
		return failure(Usage, "leasehold status --endpoints 127.0.0.1:2379",
			"--endpoints: %q: must be HOST:PORT, or several separated by commas", wrong)
	}
	return nil
}

var number = regexp.MustCompile(`^-[0-9]`)

// negativeSize explains "scale NAME -1", in which the size looks like a flag.
func negativeSize(err error, args []string) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) || helpCommand(parse) != "leasehold group scale --help" {
		return err
	}
	for _, word := range args {
		if number.MatchString(word) {
			return failure(Usage, helpCommand(parse), "size: %s: must be 0 to %d", word, store.MaxSize)
		}
	}
	return err
}
