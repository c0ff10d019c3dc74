package amazon

import (
	"net/http"
	"time"

	"github.com/leasehold/leasehold/provider/egress"
)

// idleConnections is how many connections stay open between calls: as many as calls run at once.
const idleConnections = 10

// Client sends the requests of the SDK. The SDK's own client would also reach link-local addresses,
// and follow redirects of requests without a body (SEC-7).
func Client(timeout time.Duration) (*http.Client, error) {
	client, err := egress.Client("", timeout)
	if err != nil {
		return nil, err
	}
	if t, is := client.Transport.(*http.Transport); is {
		t.MaxIdleConnsPerHost = idleConnections
	}
	return client, nil
}
