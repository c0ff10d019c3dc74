package amazon

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"time"
)

// Settings are those that all uses of Amazon's services have in the file of providers.
type Settings struct {
	Region         string
	Endpoint       string // "": Amazon's for the region
	Secrets        *Secrets
	CallsPerMinute int // 0: DefaultCalls
}

// DefaultCalls is how many requests a minute are sent unless the settings say otherwise.
const DefaultCalls = 300

var regionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)

// Check returns what is wrong with the settings, by the names that the file has for them.
func (s Settings) Check() error {
	switch {
	case s.Region == "":
		return errors.New("region: is missing: name the region, such as eu-west-1")
	case !regionForm.MatchString(s.Region):
		return fmt.Errorf("region: %q: must be a region's name, such as eu-west-1", s.Region)
	case s.CallsPerMinute < 0 || s.CallsPerMinute > 60000:
		return fmt.Errorf("calls_per_minute: %d: must be 1 to 60000", s.CallsPerMinute)
	case s.Secrets != nil && (s.Secrets.AccessKeyID == "" || s.Secrets.SecretAccessKey == ""):
		return errors.New("secrets: needs access_key_id and secret_access_key: names of secrets of the shard")
	}
	if s.Endpoint != "" {
		u, err := url.Parse(s.Endpoint)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
			return fmt.Errorf("endpoint: %q: must be https://HOST", s.Endpoint)
		}
	}
	return nil
}

// Duration reads a setting; "": otherwise.
func Duration(name, text string, otherwise time.Duration) (time.Duration, error) {
	if text == "" {
		return otherwise, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q: must be a duration such as 30s", name, text)
	}
	return d, nil
}

// NoSecret is the lookup of secrets before a coordinator gives its own.
func NoSecret(name string) (string, error) {
	return "", fmt.Errorf("secret %q is not known: only a coordinator of the shard can open its secrets", name)
}
