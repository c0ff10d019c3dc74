package amazontest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// skew is how far the clocks may differ.
const skew = 5 * time.Minute

// Account is whose requests a server takes.
type Account struct {
	Region  string
	Service string            // as signatures name it
	Keys    map[string]string // access keys and their secrets
	Session string            // the session token that requests must have; "" is none
	Expired bool              // the session token has
}

// signed checks a request's signature, version 4: it is computed again from the request as it
// arrived.
func (a Account) signed(r *http.Request, body []byte) *Fault {
	const scheme = "AWS4-HMAC-SHA256"
	denied := func(code, message string) *Fault { return &Fault{http.StatusForbidden, code, message} }
	fields, is := strings.CutPrefix(r.Header.Get("Authorization"), scheme+" ")
	if !is {
		return denied("MissingAuthenticationToken", "The request must contain a signature.")
	}
	parts := map[string]string{}
	for _, f := range strings.Split(fields, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(f), "=")
		parts[k] = v
	}
	credential := strings.Split(parts["Credential"], "/")
	if len(credential) != 5 {
		return denied("IncompleteSignature", "The credential has no scope.")
	}
	secret, known := a.Keys[credential[0]]
	if !known {
		return &Fault{http.StatusUnauthorized, "AuthFailure", "AWS was not able to validate the provided access credentials"}
	}
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	switch {
	case err != nil || credential[1] != stamp[:8] || credential[2] != a.Region || credential[3] != a.Service ||
		credential[4] != "aws4_request":
		return denied("SignatureDoesNotMatch", "Credential should be scoped to this date, region and service.")
	case time.Since(at).Abs() > skew:
		return denied("RequestExpired", "Request has expired.")
	}
	if a.Session != "" && (r.Header.Get("X-Amz-Security-Token") != a.Session || a.Expired) {
		return denied("ExpiredToken", "The security token included in the request is expired")
	}
	names := strings.Split(parts["SignedHeaders"], ";")
	if !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return denied("SignatureDoesNotMatch", "host and x-amz-date must be signed.")
	}
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.Itoa(len(body))
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	canonical := strings.Join([]string{
		r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), parts["SignedHeaders"], hexSum(body),
	}, "\n")
	key := []byte("AWS4" + secret)
	for _, step := range credential[1:] {
		key = mac(key, step)
	}
	toSign := strings.Join([]string{scheme, stamp, strings.Join(credential[1:], "/"), hexSum([]byte(canonical))}, "\n")
	want := hex.EncodeToString(mac(key, toSign))
	if !hmac.Equal([]byte(want), []byte(parts["Signature"])) {
		return denied("SignatureDoesNotMatch", "The request signature we calculated does not match the "+
			"signature you provided.")
	}
	return nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
