package egress

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// proves SEC-7
func TestOnlyWhatIsConfiguredIsReached(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	api := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer api.Close()
	client, err := Client("", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	answer, err := client.Get(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusTemporaryRedirect || asked > 0 {
		t.Errorf("a redirection was followed: %s, %d requests", answer.Status, asked)
	}
	for url, why := range map[string]string{
		"http://169.254.169.254/latest/":   "is a link-local address",
		"http://[::ffff:169.254.169.254]/": "is a link-local address",
		"http://[fe80::1%25lo]/":           "is a link-local address",
		"http://[fd00:ec2::254]/latest/":   "is the address of EC2's metadata",
		"http://[fd00:ec2:0:0::254%25lo]/": "is the address of EC2's metadata",
	} {
		_, err := client.Get(url) //nolint:bodyclose // there is none
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
