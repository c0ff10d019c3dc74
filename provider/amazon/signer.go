package amazon

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Signer signs requests. The SDK's own signer keeps the key that it derived from a secret for the
// rest of the day, by the access key's ID alone: a secret that was mistyped once and is set again
// would not be used.
type Signer struct{}

// SignHTTP signs a request.
func (Signer) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, payloadHash, service, region string,
	at time.Time, options ...func(*v4.SignerOptions),
) error {
	return v4.NewSigner().SignHTTP(ctx, c, r, payloadHash, service, region, at, options...)
}
