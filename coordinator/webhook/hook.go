package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/coordinator/reason"
	"github.com/leasehold/leasehold/provider/egress"
	"github.com/leasehold/leasehold/store"
)

// Config is a webhook's section of the coordinator's file.
type Config struct {
	URL     string `json:"url"`      // of a receiver whose address is no secret
	URLFile string `json:"url_file"` // holds the URL; read again for each delivery
	KeyFile string `json:"key_file"` // holds the signing keys, one per line; read again for each delivery
	CACert  string `json:"cacert"`   // certificate authority of the receiver; empty: the system's

	Groups   []string        `json:"groups"`   // only entries of these groups
	Rules    []string        `json:"rules"`    // only entries by these rules
	Severity reason.Severity `json:"severity"` // only entries of at least this severity; empty: warning
}

// Hook is a webhook.
type Hook struct {
	name   string
	config Config
	form   form
	client *http.Client
}

// requestTime bounds one delivery.
const requestTime = 10 * time.Second

var ruleForm = regexp.MustCompile(`^[A-Z]+-[0-9]+$`)

// Forms are the names of the forms that an event can be sent in.
func Forms() []string {
	names := make([]string, 0, len(forms))
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New returns a webhook that sends events in a form.
func New(name, formName string, c Config) (*Hook, error) {
	form, known := forms[formName]
	switch {
	case !known:
		return nil, fmt.Errorf("%q is no form of events: must be %s", formName, strings.Join(Forms(), ", "))
	case (c.URL == "") == (c.URLFile == ""):
		return nil, errors.New("must have either url or url_file, which keeps the URL out of this file")
	case form.signed && c.KeyFile == "":
		return nil, errors.New("key_file: must name a file with the key to sign events with")
	}
	if c.Severity == "" {
		c.Severity = reason.Warning
	}
	if !slices.Contains(reason.Severities, c.Severity) {
		return nil, fmt.Errorf("severity: %q: must be info, warning or critical", c.Severity)
	}
	for _, r := range c.Rules {
		if !ruleForm.MatchString(r) {
			return nil, fmt.Errorf("rules: %q: must be the ID of a rule, as DET-4", r)
		}
	}
	h := &Hook{name: name, config: c, form: form}
	if _, err := h.address(); err != nil {
		return nil, err
	}
	if _, err := h.keys(); err != nil {
		return nil, err
	}
	var err error
	if h.client, err = egress.Client(c.CACert, requestTime); err != nil {
		return nil, err
	}
	return h, nil
}

// Name returns the webhook's name.
func (h *Hook) Name() string { return h.name }

// passes reports whether an entry passes the webhook's filters.
func (h *Hook) passes(e *store.JournalEntry) bool {
	c := &h.config
	return reason.SeverityOf(e).AtLeast(c.Severity) &&
		(len(c.Groups) == 0 || slices.Contains(c.Groups, e.Group)) &&
		(len(c.Rules) == 0 || slices.Contains(c.Rules, e.Rule))
}

// address returns the URL to send to. Errors do not contain it.
func (h *Hook) address() (string, error) {
	text, field := h.config.URL, "url"
	if h.config.URLFile != "" {
		field = "url_file"
		content, err := os.ReadFile(h.config.URLFile)
		if err != nil {
			return "", fmt.Errorf("url_file: %w", err)
		}
		text = strings.TrimSpace(string(content))
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("%s: must be a URL that begins with https:// or http://", field)
	}
	return text, nil
}

// keys returns the signing keys.
func (h *Hook) keys() ([][]byte, error) {
	if h.config.KeyFile == "" {
		return nil, nil
	}
	text, err := os.ReadFile(h.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("key_file: %w", err)
	}
	var keys [][]byte
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("key_file: %s: %w", h.config.KeyFile, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("key_file: %s holds no key", h.config.KeyFile)
	}
	return keys, nil
}
