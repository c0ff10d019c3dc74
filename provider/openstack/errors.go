package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/clip"
)

const (
	throttledFor = 5 * time.Second // when OpenStack does not say
	maxText      = 300             // of an answer that is quoted
)

// refused is an answer with an error, if that is what an error is.
func refused(err error) (gophercloud.ErrUnexpectedResponseCode, bool) {
	var e gophercloud.ErrUnexpectedResponseCode
	return e, errors.As(err, &e)
}

func isStatus(err error, status int) bool { return gophercloud.ResponseCodeIs(err, status) }

// gone reports whether Nova answers that it has no such server. A proxy before Nova, and a path
// that Nova does not have, answer 404 in another form: that is no evidence.
func gone(err error) bool {
	e, is := refused(err)
	return is && e.Actual == http.StatusNotFound && messageOf(e) != ""
}

// messageOf is the message in an answer: {"forbidden": {"message": …}} of Nova, Keystone and
// Neutron. "" if the answer has another form: it comes from something between us and OpenStack.
func messageOf(e gophercloud.ErrUnexpectedResponseCode) string {
	var body map[string]json.RawMessage
	if json.Unmarshal(e.Body, &body) == nil {
		for _, raw := range body {
			var answer struct{ Message string }
			if json.Unmarshal(raw, &answer) == nil && answer.Message != "" {
				return answer.Message
			}
		}
	}
	return ""
}

// textOf is what an answer says.
func textOf(e gophercloud.ErrUnexpectedResponseCode) string {
	if message := messageOf(e); message != "" {
		return message
	}
	return http.StatusText(e.Actual) + ": " + clip.Marked(string(e.Body), maxText)
}

// meaning gives an error of OpenStack's its kind (PROV-5).
func (p *Provider) meaning(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	e, is := refused(err)
	if !is {
		return err
	}
	text := textOf(e)
	as := func(kind provider.Kind, scope string) error {
		return &provider.Error{Kind: kind, Scope: scope, Message: text}
	}
	switch e.Actual {
	case http.StatusUnauthorized:
		return as(provider.Credentials, p.config.AuthURL)
	case http.StatusForbidden:
		if isQuota(text) {
			return as(provider.Quota, p.quotaScope())
		}
		return as(provider.Credentials, "a right is missing in "+p.quotaScope())
	case http.StatusRequestEntityTooLarge:
		if isQuota(text) {
			return as(provider.Quota, p.quotaScope())
		}
		return &provider.Error{Kind: provider.Throttled, Message: text, After: retryAfter(e.ResponseHeader)}
	case http.StatusTooManyRequests:
		return &provider.Error{Kind: provider.Throttled, Message: text, After: retryAfter(e.ResponseHeader)}
	}
	if e.Actual == http.StatusNotFound && strings.HasSuffix(e.URL, "/auth/tokens") {
		return fmt.Errorf("auth_url %s: there is no Keystone: %d: %s", p.config.AuthURL, e.Actual, text)
	}
	return fmt.Errorf("%s %s: %d: %s", e.Method, pathOf(e.URL), e.Actual, text)
}

// quotaScope names the project whose quota limits us.
func (p *Provider) quotaScope() string {
	if p.config.Project == "" {
		return "the application credential's project"
	}
	return "project " + p.config.Project
}

func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return url
}

func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n < time.Hour.Seconds() {
		return time.Duration(n * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return throttledFor
}

func says(text string, parts ...string) bool {
	text = strings.ToLower(text)
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// isQuota knows the words of Nova's and Neutron's quotas; both answer 403 to other things as well.
func isQuota(text string) bool {
	return says(text, "quota", "maximum number of ports exceeded", "portlimitexceeded")
}

// noAddress: the network is full; another may not be.
func noAddress(text string) bool {
	return says(text, "no fixed ip addresses", "no more ip addresses", "no valid service subnet")
}

// full: no host has room for the server.
func full(text string) bool {
	return says(text, "no valid host", "exhausted all hosts", "exceeded max scheduling attempts",
		"insufficient compute resources")
}

// ofTheTemplate reports whether Nova refuses what the template asks for. It answers 403 to some of
// that too, such as a flavor without a disk, and names a policy when it is a right that is missing.
func ofTheTemplate(status int, text string) bool {
	return status == http.StatusBadRequest && !noAddress(text) ||
		status == http.StatusForbidden && !isQuota(text) && !says(text, "policy", "authorized", "forbidden", "permission")
}

// fieldOf is the setting that Nova's text is about, "" if it is none.
func fieldOf(text string) string {
	for _, f := range []struct {
		field string
		words []string
	}{
		{"instance_type", []string{"flavor"}}, // before the image that is too large for it
		{"settings.image", []string{"image"}},
		{"settings.key_name", []string{"key_name", "keypair", "key pair"}},
		{"settings.security_groups", []string{"security group", "security_group"}},
		{"settings.networks", []string{"network"}},
	} {
		if says(text, f.words...) {
			return f.field
		}
	}
	return ""
}

// invalid is an error of a template.
func invalid(format string, args ...any) error {
	return &provider.Error{Kind: provider.Invalid, Message: fmt.Sprintf(format, args...)}
}
